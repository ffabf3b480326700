#pragma once
// Arguments of the two-GEMM kernels (ladder and straight): plain pointers and sizes, passed by
// value. Pointers are device memory. FC1 reads `x` and writes `mid`; FC2 reads `mid` and writes one
// output row an entry: entry e goes to out + e * out_pitch_bytes (exact: position j of row r; one
// expert a row: the row itself; otherwise rows of the workspace that the combine then sums).
//
// counters: all zero when a launch begins, and left zero by it (the last block to leave clears
// them); only workspace_init() sets them first, and again once a wait expired.
//
// Thread: any (values).

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/row_tile.hpp"
#include "kernels/cuda/sm90_geometry.hpp"

namespace moetier::kernels::cuda {

// Between FC1 and FC2, in f32, after the bias; constants from the page: g = min(g, limit), u =
// clamp(u, -limit, limit) first.
enum class gemm_activation : std::uint8_t {
  swiglu = 0,       // g * sigmoid(g) * u
  swiglu_bias = 1,  // g * sigmoid(alpha * g) * (u + beta); bf16 only
};

enum class row_type : std::uint8_t { f32 = 0, bf16 = 1 };  // of what comes in
enum class out_type : std::uint8_t { f32 = 0, bf16 = 1 };

struct expert_gemm_args {
  gemm_shape shape{};
  page_layout layout{};
  gemm_activation activation = gemm_activation::swiglu;
  const std::byte* const* pages = nullptr;  // [slots]; base of each slot's page
  tile_table tiles{};
  const std::byte* x = nullptr;  // activations of FC1, tiled
  std::byte* mid = nullptr;      // activations of FC2, tiled
  std::byte* out = nullptr;
  std::size_t out_pitch_bytes = 0;
  out_type out_as = out_type::bf16;
  const float* weights = nullptr;  // [entries] by entry number; nullptr = rows leave unweighted
  std::uint32_t* counters = nullptr;
  float* partials = nullptr;  // split over K only
  std::uint32_t* status = nullptr;
  std::uint64_t deadline_ns = 0;  // of one wait for another block
};

// Counters, by index. A tile's FC1 is done when its counter reached what the kernel's own launch
// expects; the others hand out units and count blocks that left. Behind the tiles' may follow what
// a kernel's plan asks for.
struct gemm_counters {
  static constexpr std::uint32_t next_unit = 0;
  static constexpr std::uint32_t blocks_left = 1;
  static constexpr std::uint32_t first_tile = 32;  // [tiles]: FC1 parts written of each tile
};

}  // namespace moetier::kernels::cuda
