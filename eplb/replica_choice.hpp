#pragma once
// Replica choice: which slot serves each selection of a chunk. A pure function of the snapshot and
// names that the source knows: no state, no exchange, no allocation. Every choice writes the dense
// position of the replica, or -1 for id -1, and returns the first expert without a live replica, or
// -1 when all have one (only then every output is valid). Thread: any.
//
// Stratified (the default): for the n selections of an expert in this source's chunk, in row order
// j = 0..n-1, u = (p + floor(j * 65536 / n)) mod 65536, p the hash of the chunk: every replica gets
// n * share, rounded down or up. Hash: u is the hash of the row, the same in whatever batch it
// comes. Reference: round robin by (occurrence in the block of 1,024 entries + block + source),
// without shares; to compare with.

#include <cstdint>
#include <span>

#include "eplb/replica_hash.hpp"
#include "eplb/shares.hpp"

namespace moetier::eplb {

struct choice_key {
  generation_number generation;
  layer_id layer;
  source_id source;
  std::uint64_t step = 0;
  std::uint32_t chunk = 0;  // numbered through the step
};

// ids row-major [tokens, k]. counts: scratch of at least 2 * experts u32.
std::int32_t choose_stratified(const placement& p, const shares& s, std::size_t layer_index,
                               const choice_key& key, std::span<const std::int32_t> ids,
                               std::span<std::int32_t> dense, std::span<std::uint32_t> counts);
// `first_row`: number of ids' first row through the step.
std::int32_t choose_by_hash(const placement& p, const shares& s, std::size_t layer_index,
                            const choice_names& names, std::uint64_t first_row, std::uint32_t top_k,
                            std::span<const std::int32_t> ids, std::span<std::int32_t> dense);
// counts: scratch of at least `experts` u32.
std::int32_t choose_as_reference(const placement& p, std::size_t layer_index, source_id source,
                                 std::span<const std::int32_t> ids, std::span<std::int32_t> dense,
                                 std::span<std::uint32_t> counts);

}  // namespace moetier::eplb
