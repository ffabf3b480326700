#include "kernels/cuda/straight_launch.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "kernels/cuda/expert_gemm_args.hpp"
#include "kernels/cuda/straight_order.hpp"

namespace moetier::kernels::cuda {
namespace {

bool fits(const gemm_shape& shape) noexcept {
  const std::uint32_t columns = columns_of_block(shape.format);
  if (shape.hidden_size == 0 || shape.intermediate_size == 0) return false;
  if (shape.hidden_size % columns != 0 || shape.intermediate_size % columns != 0) return false;
  if (shape.format != gemm_format::fp8) return true;
  const std::uint32_t blocks_max = straight_scale_blocks_max(shape.format);
  return !shape.bias && shape.hidden_size / columns <= blocks_max &&
         shape.intermediate_size / columns <= blocks_max;
}

}  // namespace

std::optional<straight_launch> plan_straight(const gemm_shape& shape, std::uint32_t tiles_max,
                                             const device_size& device) noexcept {
  if (device.multiprocessors < k_straight_cluster || !fits(shape)) return std::nullopt;
  const std::uint32_t shared_bytes = straight_shared_bytes(shape.format);
  if (shared_bytes > device.shared_bytes_max) return std::nullopt;
  const page_layout layout = page_layout_of(shape);
  const straight::unit_order of_one_tile{.tiles = 1,
                                         .fc1_pairs = straight::strip_pairs(layout.fc1_strips),
                                         .fc2_pairs = straight::strip_pairs(layout.fc2_strips)};
  const std::uint64_t wanted = std::uint64_t{tiles_max} * of_one_tile.numbers();
  const std::uint64_t clusters =
      std::clamp<std::uint64_t>(wanted, 1, device.multiprocessors / k_straight_cluster);
  return straight_launch{
      .format = shape.format,
      .blocks = static_cast<std::uint32_t>(clusters) * k_straight_cluster,
      .shared_bytes = shared_bytes,
      .counters = gemm_counters::first_tile + tiles_max,
  };
}

std::string to_string(const straight_launch& launch) {
  return fmt::format(
      "straight {}: {} blocks of {} threads, {} stages, {} shared bytes, {} counters",
      launch.format == gemm_format::fp8 ? "fp8" : "bf16", launch.blocks, launch.threads,
      launch.stages, launch.shared_bytes, launch.counters);
}

}  // namespace moetier::kernels::cuda
