#pragma once
// How a ladder block's weights warp learns its units: it takes a number from the launch's counter,
// and from the number follow tile, slot and page, one load after the other. The table's first tiles
// are looked up once, by the whole warp at the kernel's start, so that small batches wait for none
// of these loads again.

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/sm90_ladder_block.cuh"

namespace moetier::kernels::cuda::ladder {

static_assert(sizeof(row_tile) == sizeof(int4));
__device__ __forceinline__ row_tile load_tile(const tile_table& tiles, std::uint32_t i) {
  const int4 t = __ldg(reinterpret_cast<const int4*>(tiles.tiles) + i);
  return {.slot = t.x, .first_group = t.y, .groups = t.z, .rows = t.w};
}

// One lane's tile of the table's first ones: begun before the header is there, since the table has
// room for it anyway, and kept once the header says that it is a tile.
class known_tile {
 public:
  __device__ __forceinline__ void begin(const expert_gemm_args& args, const ladder_launch& launch) {
    const std::uint32_t lane = threadIdx.x % 32;
    if (lane < launch.tiles_cap) tile_ = load_tile(args.tiles, lane);
  }
  __device__ __forceinline__ void keep(const block& b) const {
    const std::uint32_t lane = threadIdx.x % 32;
    if (lane < b.walk.tiles)
      b.shared().known[lane] = {.tile = tile_, .page = b.args.pages[tile_.slot]};
  }

 private:
  static_assert(k_ladder_known_tiles == 32);
  row_tile tile_{};
};

// The next unit, looked up one step at a time between the copies of the unit before it, so that no
// load's latency stops the stream of weights.
class lookahead {
 public:
  __device__ __forceinline__ lookahead(const block& b, std::uint32_t number)
      : block_(b), number_(number) {}

  __device__ __forceinline__ void begin() {
    number_ = atomicAdd(block_.args.counters + gemm_counters::next_unit, 1u);
    step_ = steps::unit;
  }
  __device__ __forceinline__ void step() {
    switch (step_) {
      case steps::unit: {
        record_.unit = unit_at(block_.launch, block_.walk, number_);
        const std::uint32_t tile = record_.unit.tile;
        step_ = steps::done;
        if (record_.unit.phase == ladder_phase::none) return;
        if (tile < k_ladder_known_tiles) {
          record_.tile = block_.shared().known[tile].tile;
          record_.page = block_.shared().known[tile].page;
        } else {
          record_.tile = load_tile(block_.args.tiles, tile);
          step_ = steps::page;
        }
        return;
      }
      case steps::page:
        record_.page = block_.args.pages[record_.tile.slot];
        step_ = steps::done;
        return;
      case steps::done: return;
    }
  }
  __device__ __forceinline__ const ladder_record& finish() {
    while (step_ != steps::done) step();
    return record_;
  }

 private:
  enum class steps : std::uint32_t { unit, page, done };

  const block& block_;
  ladder_record record_{};
  std::uint32_t number_ = 0;
  steps step_ = steps::unit;
};

}  // namespace moetier::kernels::cuda::ladder
