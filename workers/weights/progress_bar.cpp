#include "workers/weights/progress_bar.hpp"

#include <utility>

#include <unistd.h>

#include <fmt/core.h>

#include "schemas/base/assert.hpp"

namespace moetier::workers {
namespace {

constexpr std::uint64_t k_width = 30;  // characters of the bar

}  // namespace

std::string progress_line(std::string_view label, std::uint32_t done, std::uint32_t total) {
  const std::uint64_t whole = total == 0 ? 1 : total;
  const std::uint64_t part = total == 0 ? 1 : done;
  const auto full = static_cast<std::size_t>(k_width * part / whole);
  return fmt::format("{} [{}{}] {:>3} %  {} of {} experts", label, std::string(full, '#'),
                     std::string(k_width - full, '.'), 100 * part / whole, done, total);
}

progress_bar::progress_bar(std::string label, int descriptor)
    : label_(std::move(label)), descriptor_(descriptor), terminal_(::isatty(descriptor) == 1) {}

progress_bar::~progress_bar() {
  if (!drawn_.empty()) put("\n");
}

void progress_bar::update(std::uint32_t done, std::uint32_t total) {
  MOETIER_ASSERT(done <= total);
  if (!terminal_) return;
  std::string line = progress_line(label_, done, total);
  if (line == drawn_) return;
  drawn_ = std::move(line);
  put("\r" + drawn_);
}

// What a terminal does not take is not worth a retry.
void progress_bar::put(std::string_view text) noexcept {
  [[maybe_unused]] const auto written = ::write(descriptor_, text.data(), text.size());
}

}  // namespace moetier::workers
