#pragma once
// The names behind a replica choice, mixed to a number in [0, 65536): key = mix(mix(generation) ^
// (layer<<32 | expert)); place = source<<48 | step<<24 | low, step and low with their low 24 bits.
// Thread: any (pure functions).

#include <cstdint>

#include "schemas/base/ids.hpp"
#include "schemas/base/mix.hpp"

namespace moetier::eplb {

struct choice_names {
  generation_number generation;
  layer_id layer;
  source_id source;
  std::uint64_t step = 0;
};

// `low`: the chunk's number for a phase, the row's for a choice of its own.
constexpr std::uint64_t replica_hash(const choice_names& n, std::uint32_t expert,
                                     std::uint64_t low) noexcept {
  constexpr std::uint64_t k_low_24 = 0xffffff;
  const std::uint64_t key =
      mix(mix(n.generation.value) ^ (std::uint64_t{n.layer.value} << 32 | expert));
  const std::uint64_t place =
      std::uint64_t{n.source.value} << 48 | (n.step & k_low_24) << 24 | (low & k_low_24);
  return mix(key ^ place) >> 48;
}

}  // namespace moetier::eplb
