#pragma once
// DeepSeek's hierarchical greedy, kept to compare with: expert groups are packed on nodes, each
// node replicates its own experts, replicas are packed on its workers. One group and one node is
// its global form. Thread: any (a pure function).

#include <cstdint>
#include <span>
#include <vector>

#include "schemas/base/error.hpp"

namespace moetier::eplb {

struct hierarchy {
  std::uint32_t groups = 1;
  std::uint32_t nodes = 1;
  std::uint32_t workers = 1;
  std::uint32_t slots = 1;  // over all workers
};

// Experts by slot. reason::placement_invalid where anything does not divide: experts by groups,
// groups and workers by nodes, slots by workers; or slots < experts.
expected<std::vector<std::int32_t>> reference_hierarchical(std::span<const std::uint64_t> loads,
                                                           const hierarchy& h);

}  // namespace moetier::eplb
