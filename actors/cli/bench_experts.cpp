// One expert on one thread, for formats, sizes and numbers of rows. Cold figures walk through
// copies of the expert that together exceed the last cache, as layers do; warm ones repeat one
// copy. The forms of a format are bf16 and itself, so the ratio is its rate against bf16's.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <span>

#include <unistd.h>

#include <fmt/core.h>

#include "actors/cli/bench_core.hpp"
#include "actors/cli/bench_kernels.hpp"
#include "actors/cli/random_expert.hpp"

namespace moetier::cli {
namespace {

constexpr std::uint32_t k_rows[] = {1, 4, 16, 64};
constexpr std::size_t k_copies_min = 4;
constexpr std::size_t k_cold_bytes_max = std::size_t{1} << 30;
constexpr double k_cold_us_max = 400e3;  // of one figure, beyond its first few calls
constexpr double k_error_max = 1e-5;     // of f32 chains over K against double

struct bench_size {
  std::uint32_t hidden_size;
  std::uint32_t intermediate_size;
};
constexpr bench_size k_sizes[] = {{2048, 768}, {4096, 1536}};
// Each beside bf16.
constexpr quant_kind k_formats[] = {quant_kind::fp8_block, quant_kind::mxfp4,
                                    quant_kind::int4_g128};
constexpr std::uint32_t k_warm_calls_max = 20;

// More than the last cache holds, so that a copy has left it before its next use.
std::size_t cold_bytes() {
  const long cache = ::sysconf(_SC_LEVEL3_CACHE_SIZE);
  const std::size_t known = cache > 0 ? static_cast<std::size_t>(cache) : std::size_t{64} << 20;
  return std::min(known + known / 4, k_cold_bytes_max);
}

// Rows of one slot in a loop over copies of a page.
class expert_loop final {
 public:
  expert_loop(kernels::Backend& backend, const random_expert& expert, std::uint32_t rows_max,
              std::uint64_t seed)
      : backend_(backend),
        page_bytes_(backend.page_bytes()),
        copies_(std::max(k_copies_min, (cold_bytes() + page_bytes_ - 1) / page_bytes_)),
        pages_(copies_ * page_bytes_),
        workspace_(backend.workspace_bytes(rows_max, 1)),
        in_(random_values(std::size_t{rows_max} * backend.shape().hidden_size, 1.0F, seed)),
        out_(in_.size()) {
    backend.pack_page(expert.tensors(), pages_.span().first(page_bytes_));
    for (std::size_t i = 1; i < copies_; ++i)
      std::memcpy(pages_.data() + i * page_bytes_, pages_.data(), page_bytes_);
  }

  std::size_t copies() const noexcept { return copies_; }
  std::span<const float> first_row() const {
    return std::span(in_).first(backend_.shape().hidden_size);
  }
  std::span<const float> first_result() const {
    return std::span(out_).first(backend_.shape().hidden_size);
  }

  // Microseconds of one call through copy `i`; below 0 where the backend refused.
  double call(std::size_t i, std::uint32_t rows) {
    const std::size_t pitch = backend_.shape().hidden_size * sizeof(float);
    const std::byte* page = pages_.data() + i % copies_ * page_bytes_;
    const kernels::row_region from{reinterpret_cast<const std::byte*>(in_.data()), pitch, rows};
    const kernels::out_region to{reinterpret_cast<std::byte*>(out_.data()), pitch};
    entries_.clear();
    for (std::uint32_t r = 0; r < rows; ++r) entries_.push_back({.row = r, .weight = 1.0F});
    const double began = thread_us();
    const auto done = backend_.run({.in = {&from, 1},
                                    .out = {&to, 1},
                                    .entries = entries_,
                                    .pages = {&page, 1},
                                    .k_in = 1,
                                    .mode = kernels::return_mode::partial,
                                    .workspace = workspace_.span()});
    const double us = thread_us() - began;
    return done == kernels::compute_status::ok ? us : -1;
  }

  double cold_call(std::uint32_t rows) { return call(next_++, rows); }
  double warm_call(std::uint32_t rows) { return call(0, rows); }

 private:
  kernels::Backend& backend_;
  std::size_t page_bytes_;
  std::size_t copies_;
  aligned_bytes pages_;
  aligned_bytes workspace_;
  std::vector<float> in_, out_;
  std::vector<kernels::expert_entry> entries_;
  std::size_t next_ = 1;
};

double relative_error(std::span<const float> y, std::span<const double> truth) {
  double squares = 0;
  double differences = 0;
  for (std::size_t n = 0; n < truth.size(); ++n) {
    squares += truth[n] * truth[n];
    differences += (double{y[n]} - truth[n]) * (double{y[n]} - truth[n]);
  }
  return std::sqrt(differences / std::max(squares, 1e-300));
}

struct expert_times {
  std::vector<double> cold_us;  // ascending
  double warm_us = 0;

  double median() const { return cold_us[cold_us.size() / 2]; }
};

// Calls of both loops take turns, so that what slows the machine slows both. The second is null for
// the baseline itself.
std::pair<expert_times, expert_times> take_turns(expert_loop& base, expert_loop* own,
                                                 std::uint32_t rows, std::uint32_t repeat) {
  std::pair<expert_times, expert_times> t;
  const auto measure = [&](expert_loop& loop, expert_times& into, bool cold) {
    const double us = cold ? loop.cold_call(rows) : loop.warm_call(rows);
    if (cold)
      into.cold_us.push_back(us);
    else
      into.warm_us = into.warm_us == 0 ? us : std::min(into.warm_us, us);
    return us;
  };
  double spent = 0;
  while (t.first.cold_us.size() < k_copies_min ||
         (t.first.cold_us.size() < repeat && spent < k_cold_us_max)) {
    spent += measure(base, t.first, true);
    if (own != nullptr) measure(*own, t.second, true);
  }
  for (std::uint32_t i = 0; i < std::min(repeat, k_warm_calls_max); ++i) {
    measure(base, t.first, false);
    if (own != nullptr) measure(*own, t.second, false);
  }
  std::sort(t.first.cold_us.begin(), t.first.cold_us.end());
  std::sort(t.second.cold_us.begin(), t.second.cold_us.end());
  return t;
}

// An expert in one format, ready to be called, and what its first row must give.
struct format_case {
  std::unique_ptr<kernels::Backend> backend;
  std::unique_ptr<expert_loop> loop;
  std::vector<double> truth;
};

expected<format_case> make_case(const kernels::expert_shape& shape, std::uint64_t seed) {
  format_case made;
  auto backend = kernels::make_cpu_backend("auto", shape, {}, kernels::detect_cpu_features());
  if (!backend) return tl::unexpected(backend.error());
  const auto expert = make_random_expert(shape, seed);
  if (!expert) return tl::unexpected(expert.error());
  made.backend = std::move(*backend);
  made.loop = std::make_unique<expert_loop>(*made.backend, *expert, std::end(k_rows)[-1], seed);
  made.truth.resize(shape.hidden_size);
  kernels::reference_expert(shape, expert->tensors(), made.loop->first_row(), made.truth);
  return made;
}

// `own` is null where the baseline itself is shown.
void bench_case(format_case& base, format_case* own, const kernel_bench_options& options,
                std::vector<kernel_figures>& into) {
  format_case& shown = own != nullptr ? *own : base;
  const kernels::expert_shape& shape = shown.backend->shape();
  const std::string name(own == nullptr ? dtype_name(shape.format.stored)
                                        : quant_name(shape.format.quant));
  const double products = 3.0 * shape.hidden_size * shape.intermediate_size;
  const auto page = static_cast<double>(shown.backend->page_bytes());
  for (const std::uint32_t rows : k_rows) {
    const auto [bf16, other] =
        take_turns(*base.loop, own != nullptr ? own->loop.get() : nullptr, rows, options.repeat);
    const expert_times& t = own != nullptr ? other : bf16;
    const double error = relative_error(shown.loop->first_result(), shown.truth);
    kernel_figures f{
        .kernel = name,
        .shape = fmt::format("H {} I {} rows {}", shape.hidden_size, shape.intermediate_size, rows),
        .unit = "us, cold",
        .forms = {{"bf16", bf16.median()}},
        .aim = own == nullptr ? 0
               : rows <= 4    ? 1.0
                              : 0.85,
        .agrees = t.cold_us.front() > 0 && error <= k_error_max,
        .note = std::string(shown.backend->identity())};
    if (own != nullptr) f.forms.emplace_back(name, t.median());
    f.more = {{"gflops", 2 * products * rows / t.median() / 1e3},
              {"weights_gb_s", page / t.median() / 1e3},
              {"cold_min_us", t.cold_us.front()},
              {"warm_us", t.warm_us},
              {"warm_gflops", 2 * products * rows / t.warm_us / 1e3},
              {"warm_weights_gb_s", page / t.warm_us / 1e3},
              {"warm_ratio", bf16.warm_us / t.warm_us},
              {"page_bytes", page},
              {"copies", static_cast<double>(shown.loop->copies())},
              {"error_rms", error}};
    into.push_back(std::move(f));
  }
}

}  // namespace

expected<std::vector<kernel_figures>> bench_experts(const kernel_bench_options& options) {
  std::vector<kernel_figures> figures;
  for (const bench_size& size : k_sizes) {
    const auto shape_of = [&](quant_kind quant) {
      return kernels::expert_shape{.hidden_size = size.hidden_size,
                                   .intermediate_size = size.intermediate_size,
                                   .format = {.quant = quant}};
    };
    auto base = make_case(shape_of(quant_kind::none), options.seed);
    if (!base) return tl::unexpected(base.error());
    bench_case(*base, nullptr, options, figures);
    for (const quant_kind quant : k_formats) {
      auto own = make_case(shape_of(quant), options.seed);
      if (!own) return tl::unexpected(own.error());
      bench_case(*base, &*own, options, figures);
    }
  }
  return figures;
}

}  // namespace moetier::cli
