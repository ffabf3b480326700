#pragma once
// The reference greedy as TensorRT-LLM has it: replicate, then place every replica, by falling
// load per replica, on the least-loaded worker with a free slot. Kept to compare with, and as the
// start where window-wrap does not apply. Replicas of an expert may share a worker unless
// `distinct` is asked. Thread: any (pure functions).

#include <cstdint>
#include <span>
#include <vector>

#include "eplb/slot_layout.hpp"

namespace moetier::eplb {

// Experts by slot. Requires: layout.slots() >= loads.size().
std::vector<std::int32_t> reference_global(std::span<const std::uint64_t> loads,
                                           const slot_layout& layout);
// The same without an expert twice on a worker: replicas capped at the number of workers; slots
// that nobody may take stay empty.
std::vector<std::int32_t> reference_distinct(std::span<const std::uint64_t> loads,
                                             const slot_layout& layout);

// Slots of each expert: slots[offset[e] + j] = its j-th slot, rising.
struct replica_tables {
  std::vector<std::uint32_t> offset;  // experts + 1
  std::vector<std::uint32_t> slots;
};
replica_tables tables_of(std::span<const std::int32_t> slots, std::uint32_t experts);

// Load of each worker where every replica serves load / replicas.
std::vector<double> even_loads(std::span<const std::uint64_t> loads, const slot_layout& layout,
                               std::span<const std::int32_t> slots);

}  // namespace moetier::eplb
