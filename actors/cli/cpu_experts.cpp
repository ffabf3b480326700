// One whole expert through its Backend: FC1, SwiGLU, FC2 and the weighted sum into rows, on one
// thread and on two.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>

#include "actors/cli/cpu_measure.hpp"
#include "actors/cli/cpu_samples.hpp"
#include "actors/cli/random_expert.hpp"
#include "kernels/cpu/compute_pool.hpp"
#include "schemas/base/time.hpp"

namespace moetier::cli {
namespace {

// Some milliseconds, beside which a wake-up is nothing.
constexpr std::size_t k_fma_gain_rounds = 20'000;

// A backend, its scratch, and rows of one slot.
struct expert_call_of {
  std::unique_ptr<kernels::Backend> backend;
  aligned_bytes workspace{0};
  std::vector<kernels::expert_entry> entries{};

  void run(const std::byte* page, const std::vector<float>& in, std::uint32_t rows,
           std::vector<float>& out) {
    const std::size_t pitch = backend->shape().hidden_size * sizeof(float);
    const kernels::row_region from{reinterpret_cast<const std::byte*>(in.data()), pitch, rows};
    const kernels::out_region to{reinterpret_cast<std::byte*>(out.data()), pitch};
    while (entries.size() < rows)
      entries.push_back({.row = static_cast<std::uint32_t>(entries.size()), .weight = 1.0F});
    backend->run({.in = {&from, 1},
                  .out = {&to, 1},
                  .entries = std::span(entries).first(rows),
                  .pages = {&page, 1},
                  .k_in = 1,
                  .mode = kernels::return_mode::partial,
                  .workspace = workspace.span()});
  }
};

expected<expert_call_of> open_call(const kernels::expert_shape& shape, unsigned threads,
                                   std::uint32_t rows_max) {
  auto made = kernels::make_cpu_backend("cpu_avx2", shape, {.threads = threads},
                                        kernels::detect_cpu_features());
  if (!made) return tl::unexpected(made.error());
  const std::size_t scratch = (*made)->workspace_bytes(rows_max, 1);
  return expert_call_of{std::move(*made), aligned_bytes(scratch)};
}

bool same_rows(std::span<const float> a, std::span<const float> b, std::size_t floats) {
  return std::memcmp(a.data(), b.data(), floats * sizeof(float)) == 0;
}

// The first and the last row against the fp64 oracle; all rows against the same among more.
cpu_oracle judge(const kernels::expert_shape& shape, const random_expert& expert,
                 const std::vector<float>& in, std::span<const float> out,
                 std::span<const float> among_more, std::uint32_t rows) {
  const std::size_t hidden = shape.hidden_size;
  std::vector<double> truth(hidden);
  cpu_oracle judged;
  for (const std::size_t r : {std::size_t{0}, std::size_t{rows - 1}}) {
    kernels::reference_expert(shape, expert.tensors(), std::span(in).subspan(r * hidden, hidden),
                              truth);
    double errors = 0;
    double squares = 0;
    for (std::size_t h = 0; h < hidden; ++h) {
      const double error = double{out[r * hidden + h]} - truth[h];
      errors += error * error;
      squares += truth[h] * truth[h];
    }
    const double norm = std::sqrt(errors / std::max(squares, 1e-300));
    if (std::isnan(norm) || norm > judged.norm) judged.norm = norm;
  }
  judged.same_bits = same_rows(out, among_more, rows * hidden);
  return judged;
}

double wall_us(const std::function<void()>& call) {
  const time_ns began = monotonic_now();
  call();
  return static_cast<double>(monotonic_now() - began) / 1e3;
}

// What a second thread adds where nothing is shared: the speed of two bare fma loops over one's.
double fma_gain(kernels::compute_pool& pair) {
  const auto loop = [](std::uint32_t = 0, unsigned = 0) {
    kernels::k_cpu_ceiling_probes_avx2.fma(k_fma_gain_rounds);
  };
  const double one = wall_us([&] { loop(); });
  return 2 * one / wall_us([&] { pair.for_each(2, loop); });
}

}  // namespace

expected<std::vector<cpu_figures>> measure_experts(const product_size& size,
                                                   std::span<const std::uint32_t> rows,
                                                   const cpu_measure_options& options) {
  const kernels::expert_shape shape{.hidden_size = size.outputs, .intermediate_size = size.depth};
  const std::size_t hidden = shape.hidden_size;
  const std::uint32_t most = *std::max_element(rows.begin(), rows.end());
  auto one = open_call(shape, 1, most);
  if (!one) return tl::unexpected(one.error());
  // Made before this thread is pinned: its own thread may go anywhere.
  const bool has_two = pinned_thread::processors() >= 2;
  auto two = open_call(shape, has_two ? 2 : 1, most);
  if (!two) return tl::unexpected(two.error());
  kernels::compute_pool pair(2);
  const auto expert = make_random_expert(shape, options.seed);
  if (!expert) return tl::unexpected(expert.error());

  const pinned_thread pinned;
  const std::size_t page_bytes = one->backend->page_bytes();
  weight_ring ring(page_bytes, options.ring_bytes);
  one->backend->pack_page(expert->tensors(), ring.first());
  ring.spread();
  const std::vector<float> in = random_values(most * hidden, 1.0F, options.seed + 7);
  std::vector<float> all(in.size());
  std::vector<float> out(in.size());
  one->run(ring.copy(0), in, most, all);
  const std::size_t weights = 3 * std::size_t{size.outputs} * size.depth * sizeof(std::uint16_t);
  cold_sampler sampler(kernels::k_cpu_ceiling_probes_avx2, ring, page_bytes);

  std::vector<cpu_figures> figures;
  for (const std::uint32_t count : rows) {
    cpu_figures f;
    f.what = "expert";
    f.size = size;
    f.rows = count;
    f.flops = 6.0 * count * size.outputs * size.depth;
    f.weight_bytes = static_cast<double>(weights);
    f.aim = aim_of_expert(count);
    const auto run = [&](const std::byte* page) { one->run(page, in, count, out); };
    std::fill(out.begin(), out.end(), std::nanf(""));
    run(ring.copy(0));
    f.oracle = judge(shape, *expert, in, out, all, count);
    cpu_samples samples;
    std::vector<double> one_us, two_us, fma_gains;
    while (samples.cold_count() < options.samples) {
      samples.take_round(sampler, ring, f.flops, run);
      // In turns, by the clock on the wall: a thread that waits counts here.
      for (std::uint32_t i = 0; has_two && i < k_cold_per_round; ++i) {
        one_us.push_back(wall_us([&] { run(ring.copy(ring.next())); }));
        two_us.push_back(wall_us([&] { two->run(ring.copy(ring.next()), in, count, out); }));
      }
      if (has_two) fma_gains.push_back(fma_gain(pair));
    }
    // `out` is of the last call: of two threads where there are.
    f.oracle.same_bits = f.oracle.same_bits && same_rows(out, all, count * hidden);
    samples.give(f);
    if (has_two) {
      f.two_threads =
          spread_of_samples(std::move(one_us)).median / spread_of_samples(std::move(two_us)).median;
      f.two_fma = spread_of_samples(std::move(fma_gains)).median;
    }
    figures.push_back(std::move(f));
  }
  return figures;
}

}  // namespace moetier::cli
