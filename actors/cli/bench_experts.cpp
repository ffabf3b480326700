// One expert on one thread, for formats, sizes and numbers of rows. Cold figures walk through
// copies of the expert that together exceed the last cache, as layers do; warm ones repeat one
// copy. The forms of a format are bf16 and itself, so the ratio is its rate against bf16's.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <span>

#include <unistd.h>

#include <fmt/format.h>

#include "actors/cli/bench_kernels.hpp"
#include "actors/cli/random_expert.hpp"
#include "schemas/base/time.hpp"

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
// bf16 first: the others are compared with it.
constexpr quant_kind k_formats[] = {quant_kind::none, quant_kind::fp8_block, quant_kind::mxfp4,
                                    quant_kind::int4_g128};

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
    const time_ns began = monotonic_now();
    const auto done = backend_.run({.in = {&from, 1},
                                    .out = {&to, 1},
                                    .entries = entries_,
                                    .pages = {&page, 1},
                                    .k_in = 1,
                                    .mode = kernels::return_mode::partial,
                                    .workspace = workspace_.span()});
    const double us = static_cast<double>(monotonic_now() - began) / 1e3;
    return done == kernels::compute_status::ok ? us : -1;
  }

  // Sorted times of calls through one copy after another.
  std::vector<double> cold(std::uint32_t rows, std::uint32_t repeat) {
    std::vector<double> us;
    double spent = 0;
    call(next_++, rows);
    while (us.size() < k_copies_min || (us.size() < repeat && spent < k_cold_us_max)) {
      us.push_back(call(next_++, rows));
      spent += us.back();
    }
    std::sort(us.begin(), us.end());
    return us;
  }
  double warm(std::uint32_t rows, std::uint32_t repeat) {
    call(0, rows);
    double best = call(0, rows);
    for (std::uint32_t i = 0; i < std::min(repeat, 20u); ++i) best = std::min(best, call(0, rows));
    return best;
  }

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

struct pair_of_times {
  double cold_us = 0;
  double warm_us = 0;
};
using times_by_rows = std::map<std::uint32_t, pair_of_times>;

expected<void> bench_format(const kernels::expert_shape& shape, const kernel_bench_options& options,
                            times_by_rows& bf16, std::vector<kernel_figures>& into) {
  auto backend = kernels::make_cpu_backend("auto", shape, {}, kernels::detect_cpu_features());
  if (!backend) return tl::unexpected(backend.error());
  const auto expert = make_random_expert(shape, options.seed);
  if (!expert) return tl::unexpected(expert.error());
  expert_loop loop(**backend, *expert, std::end(k_rows)[-1], options.seed);
  std::vector<double> truth(shape.hidden_size);
  kernels::reference_expert(shape, expert->tensors(), loop.first_row(), truth);

  const bool baseline = shape.format.quant == quant_kind::none;
  const std::string name(baseline ? dtype_name(shape.format.stored)
                                  : quant_name(shape.format.quant));
  const double products = 3.0 * shape.hidden_size * shape.intermediate_size;
  const auto page = static_cast<double>((*backend)->page_bytes());
  for (const std::uint32_t rows : k_rows) {
    const std::vector<double> cold = loop.cold(rows, options.repeat);
    const pair_of_times own{cold[cold.size() / 2], loop.warm(rows, options.repeat)};
    const double error = relative_error(loop.first_result(), truth);
    if (baseline) bf16[rows] = own;
    kernel_figures f{
        .kernel = name,
        .shape = fmt::format("H {} I {} rows {}", shape.hidden_size, shape.intermediate_size, rows),
        .unit = "us, cold",
        .forms = {{"bf16", bf16[rows].cold_us}},
        .aim = baseline    ? 0
               : rows <= 4 ? 1.0
                           : 0.85,
        .agrees = cold.front() > 0 && error <= k_error_max,
        .note = std::string((*backend)->identity())};
    if (!baseline) f.forms.emplace_back(name, own.cold_us);
    f.more = {{"gflops", 2 * products * rows / own.cold_us / 1e3},
              {"weights_gb_s", page / own.cold_us / 1e3},
              {"cold_min_us", cold.front()},
              {"warm_us", own.warm_us},
              {"warm_gflops", 2 * products * rows / own.warm_us / 1e3},
              {"warm_weights_gb_s", page / own.warm_us / 1e3},
              {"warm_ratio", bf16[rows].warm_us / own.warm_us},
              {"page_bytes", page},
              {"copies", static_cast<double>(loop.copies())},
              {"error_rms", error}};
    into.push_back(std::move(f));
  }
  return {};
}

}  // namespace

expected<std::vector<kernel_figures>> bench_experts(const kernel_bench_options& options) {
  std::vector<kernel_figures> figures;
  for (const bench_size& size : k_sizes) {
    times_by_rows bf16;
    for (const quant_kind quant : k_formats) {
      const kernels::expert_shape shape{.hidden_size = size.hidden_size,
                                        .intermediate_size = size.intermediate_size,
                                        .format = {.quant = quant}};
      if (auto done = bench_format(shape, options, bf16, figures); !done)
        return tl::unexpected(done.error());
    }
  }
  return figures;
}

}  // namespace moetier::cli
