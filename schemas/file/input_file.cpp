#include "schemas/file/input_file.hpp"

#include <cerrno>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/core.h>

namespace moetier {
namespace {

std::string text_of(int code) { return std::generic_category().message(code); }

}  // namespace

input_file::input_file(std::string name, int descriptor, std::uint64_t size) noexcept
    : name_(std::move(name)), descriptor_(descriptor), size_(size) {}

input_file::~input_file() { ::close(descriptor_); }

expected<std::unique_ptr<input_file>> input_file::open(std::string name) {
  // Non-blocking, so that opening a pipe returns and is then refused.
  const int descriptor = ::open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return fail(reason::file_unreadable, name, text_of(errno));
  struct stat about {};
  const bool known = ::fstat(descriptor, &about) == 0;
  const int code = errno;
  if (!known || !S_ISREG(about.st_mode)) {
    ::close(descriptor);
    return fail(reason::file_unreadable, name, known ? "it is not a regular file" : text_of(code));
  }
  return std::unique_ptr<input_file>(
      new input_file(std::move(name), descriptor, static_cast<std::uint64_t>(about.st_size)));
}

expected<std::string> input_file::read_text(const std::string& name, std::size_t bytes_max) {
  auto file = open(name);
  if (!file) return unexpected_error(std::move(file.error()));
  const std::uint64_t size = (*file)->size();
  if (size > bytes_max)
    return fail(reason::limit_exceeded, fmt::format("the size of {} in bytes", name), size,
                bytes_max);
  std::string text(static_cast<std::size_t>(size), '\0');
  if (auto done = (*file)->read(0, std::as_writable_bytes(std::span(text))); !done)
    return unexpected_error(std::move(done.error()));
  return text;
}

expected<void> input_file::read(std::uint64_t offset, std::span<std::byte> into) const {
  std::size_t done = 0;
  while (done < into.size()) {
    const ssize_t got = ::pread(descriptor_, into.data() + done, into.size() - done,
                                static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail(reason::file_unreadable, name_, text_of(errno));
    if (got == 0)
      return fail(reason::file_unreadable, name_,
                  fmt::format("it was cut while in use: {} bytes at offset {} were due, {} came",
                              into.size(), offset, done));
    done += static_cast<std::size_t>(got);
  }
  return {};
}

}  // namespace moetier
