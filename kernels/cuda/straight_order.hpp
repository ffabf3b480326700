#pragma once
// Which unit of work a number stands for in the straight kernels: a unit is 128 rows x 256 page
// rows of one product, and a number a pair of them, one for each block of a cluster. Numbers run
// over FC1's units, then FC2's; within a product segment by segment; within a segment by two strip
// pairs at a time with all tiles, so that clusters at work at the same time share weights in L2,
// however large the matrix. A segment's tiles go two by two, a cluster on the same strips and thus
// on one copy of the weights; a last odd tile goes alone, a cluster on both strip pairs and one
// copy of the rows.
//
// Pure, for host and device alike: the device reads the row tiles, tests make some up.
//
// Thread: any.

#include <cstdint>

#include "kernels/cuda/sm90_geometry.hpp"

namespace moetier::kernels::cuda::straight {

// idle: pass the stages on, as the cluster's other block has a unit; none: the walk is over.
enum class unit_kind : std::uint32_t { fc1 = 0, fc2 = 1, idle = 2, none = 3 };

// What the units of a cluster's two blocks have in common: the strips or the row tile.
enum class unit_sharing : std::uint8_t { weights = 0, rows = 1 };

struct unit_place {
  unit_kind kind = unit_kind::none;
  unit_sharing sharing = unit_sharing::weights;
  std::uint32_t tile = 0;
  std::uint32_t strip_pair = 0;
  bool reread = false;  // other clusters need these weights soon
  // An odd number of strip pairs leaves some numbers without a unit for the second block or for
  // both.
  bool exists = false;
  bool both_idle = false;

  bool operator==(const unit_place&) const = default;
};

constexpr std::uint32_t strip_pairs(std::uint32_t strips) noexcept {
  return (strips + k_unit_strips - 1) / k_unit_strips;
}

// Numbers of all tiles stay below 2^32: 2^24 tiles alone are 2^31 rows.
struct unit_order {
  std::uint32_t tiles = 0;
  std::uint32_t fc1_pairs = 0;  // of strips
  std::uint32_t fc2_pairs = 0;

  // Of a tile: two strip pairs a number.
  static constexpr std::uint32_t numbers_of_tile(std::uint32_t pairs) noexcept {
    return (pairs + 1) / 2;
  }
  constexpr std::uint32_t numbers() const noexcept {
    return tiles * (numbers_of_tile(fc1_pairs) + numbers_of_tile(fc2_pairs));
  }

  // A segment of n tiles has n times a tile's numbers, as if each of its tiles had them in a row:
  // the tile that a number would then fall on gives the segment.
  //
  // Requires: number < numbers(), rank < 2; tables as tile_table has them.
  constexpr unit_place place_of(const std::int32_t* tile_segment, const std::int32_t* segment_tile,
                                std::uint32_t number, std::uint32_t rank) const noexcept {
    const bool fc1 = number < tiles * numbers_of_tile(fc1_pairs);
    const std::uint32_t pairs = fc1 ? fc1_pairs : fc2_pairs;
    const std::uint32_t of_tile = numbers_of_tile(pairs);
    const std::uint32_t within = fc1 ? number : number - tiles * numbers_of_tile(fc1_pairs);
    const std::int32_t segment = tile_segment[within / of_tile];
    const auto first = static_cast<std::uint32_t>(segment_tile[segment]);
    const auto count = static_cast<std::uint32_t>(segment_tile[segment + 1]) - first;
    const std::uint32_t in_segment = within - first * of_tile;
    const std::uint32_t first_pair = in_segment / count * 2;
    const std::uint32_t step = in_segment % count;
    const std::uint32_t doubles = count / 2;  // of tiles
    unit_place at;
    at.kind = fc1 ? unit_kind::fc1 : unit_kind::fc2;
    if (step < doubles * 2) {
      at.sharing = unit_sharing::weights;
      at.tile = first + step % doubles * 2 + rank;
      at.strip_pair = first_pair + step / doubles;
      if (at.strip_pair >= pairs) {
        at.sharing = unit_sharing::rows;
        at.tile -= rank;
        at.both_idle = true;
      }
    } else {
      at.sharing = unit_sharing::rows;
      at.tile = first + count - 1;
      at.strip_pair = first_pair + rank;
    }
    at.reread = count > 2;
    at.exists = at.strip_pair < pairs;
    return at;
  }
};

}  // namespace moetier::kernels::cuda::straight
