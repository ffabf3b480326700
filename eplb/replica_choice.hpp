#pragma once
// Replica choice: which slot serves each selection of a chunk. Stratified: for the n selections of
// an expert in this source's chunk, in row order j = 0..n-1, u = (p + floor(j·65536/n)) mod 65536,
// p = mix(key ^ (source<<48 | step<<24 | chunk)) >> 48, key = mix(mix(generation) ^ (layer<<32 |
// expert)); step and chunk: low 24 bits. Every replica gets n·share, rounded down or up. A pure
// function of the snapshot and names the source knows: no state, no exchange. Thread: any.

#include <cstdint>
#include <span>

#include "eplb/shares.hpp"

namespace moetier::eplb {

struct choice_key {
  generation_number generation;
  layer_id layer;
  source_id source;
  std::uint64_t step = 0;
  std::uint32_t chunk = 0;  // numbered through the step
};

// For each selection ids[i] (row-major [tokens, k], -1 = none) writes the dense position of the
// chosen replica, or -1. Returns the first expert without a live replica, or -1 when all have one
// (then every output is valid). counts: scratch of at least 2 * experts u32. Never allocates.
std::int32_t choose_stratified(const placement& p, const shares& s, std::size_t layer_index,
                               const choice_key& key, std::span<const std::int32_t> ids,
                               std::span<std::int32_t> dense, std::span<std::uint32_t> counts);

}  // namespace moetier::eplb
