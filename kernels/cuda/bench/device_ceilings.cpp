#include "kernels/cuda/bench/device_ceilings.hpp"

#include "kernels/cuda/bench/clock_mark.hpp"
#include "kernels/cuda/bench/matrix_rate.hpp"
#include "kernels/cuda/bench/random_page.hpp"
#include "kernels/cuda/bench/sm90_read_probe.hpp"
#include "kernels/cuda/sm90_geometry.hpp"

namespace moetier::kernels::cuda::bench {
namespace {

constexpr std::uint32_t k_pages = 64;
constexpr std::uint64_t k_page_bytes = std::uint64_t{64} << 20;
constexpr std::uint64_t k_copy_bytes = std::uint64_t{2} << 30;
constexpr std::uint32_t k_nodes = 256;
constexpr std::uint32_t k_repeats = 7;

double median_us(bench_stream& stream, const bench_graph& graph) {
  std::vector<double> times;
  for (std::uint32_t i = 0; i < k_repeats; ++i) times.push_back(stream.replay_us(graph));
  return spread_of(std::move(times)).median;
}

}  // namespace

expected<device_ceilings> measure_ceilings(bench_stream& stream) {
  device_ceilings ceilings;
  {
    const device_block pages = stream.allocate(k_pages * k_page_bytes);
    const device_block table = stream.allocate(k_pages * sizeof(std::byte*));
    const device_block active = stream.allocate((k_pages + 1) * sizeof(std::uint32_t));
    const device_block sink =
        stream.allocate(stream.facts().size.multiprocessors * sizeof(std::uint32_t));
    std::vector<const std::byte*> at;
    std::vector<std::uint32_t> slots{k_pages};
    for (std::uint32_t p = 0; p < k_pages; ++p) {
      at.push_back(pages.data() + p * k_page_bytes);
      slots.push_back(p);
    }
    stream.take(fill_codes(pages.data(), k_pages * k_page_bytes, 5, stream.stream()));
    stream.upload(table, at);
    stream.upload(active, slots);
    const bench_graph read = stream.capture([&] {
      stream.take(read_pages({.pages = table.as<const std::byte*>(),
                              .active = active.as<std::uint32_t>(),
                              .fc1_tiles = k_page_bytes / k_tile_bytes,
                              .sink = sink.as<std::uint32_t>()},
                             stream.facts().size, stream.stream()));
    });
    ceilings.read_tb_s =
        static_cast<double>(k_pages * k_page_bytes) / median_us(stream, read) / 1e6;
    // Not as a graph: there the copy engines do it, at two thirds of this rate.
    const auto copy = [&] { stream.copy(pages.data() + k_copy_bytes, pages.data(), k_copy_bytes); };
    std::vector<double> copy_us;
    for (std::uint32_t i = 0; i < k_repeats; ++i) copy_us.push_back(stream.enqueue_us(copy));
    ceilings.copy_tb_s =
        2.0 * static_cast<double>(k_copy_bytes) / spread_of(std::move(copy_us)).median / 1e6;
  }
  const bench_graph nodes = stream.capture([&] {
    for (std::uint32_t i = 0; i < k_nodes; ++i) stream.take(launch_nothing(stream.stream()));
  });
  ceilings.node_gap_us = median_us(stream, nodes) / k_nodes;
  const matrix_rates rates = measure_matrix_rates(stream);
  ceilings.bf16_tf = rates.bf16_tf;
  ceilings.fp8_tf = rates.fp8_tf;
  ceilings.note = rates.note;
  if (!stream.ok()) return tl::unexpected(stream.failed("measuring ceilings"));
  return ceilings;
}

}  // namespace moetier::kernels::cuda::bench
