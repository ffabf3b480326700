#pragma once
// The workspace of an sm_90 expert layer: which part lies where, as a pure function of shape and
// capacity, enough for every choice of kernel and tile height. Only the counters need to be set
// before the first call; every other part is written before it is read. They come first and are as
// many for every capacity, so that calls of any size may share a workspace. Thread: any (values,
// pure functions).

#include <cstddef>
#include <cstdint>
#include <optional>

#include "kernels/cuda/expert_layer.hpp"

namespace moetier::kernels::cuda {

struct sm90_workspace {
  // Offsets in bytes, each at a multiple of 256.
  std::size_t counters_bytes = 0;  // at offset 0
  std::size_t header = 0;
  std::size_t tiles = 0;
  std::size_t segment_tile = 0;
  std::size_t tile_segment = 0;
  std::size_t entry_of = 0;
  std::size_t place_of = 0;
  std::size_t scratch = 0;  // of the grouping
  std::size_t scratch_bytes = 0;
  std::size_t x = 0;
  std::size_t mid = 0;
  std::size_t y = 0;  // f32 rows of all entries, for the combine
  std::size_t partials = 0;
  std::size_t bytes = 0;
};

// Of the counters at the head of every workspace of this shape; 0 where plan_workspace() gives
// none.
std::size_t counters_bytes_of(const gemm_shape& shape, const device_size& device) noexcept;

// Nothing where a kernel cannot be launched for this shape on this device, or the capacity is more
// than the grouping takes.
std::optional<sm90_workspace> plan_workspace(const gemm_shape& shape,
                                             const layer_capacity& capacity,
                                             const device_size& device) noexcept;

}  // namespace moetier::kernels::cuda
