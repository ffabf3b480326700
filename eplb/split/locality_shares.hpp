#pragma once
// Locality: one share table per source cluster, so that as few rows as possible cross clusters
// while no worker gets fuller than 1.02 times the exact split. Which expert a token visits never
// changes, only which replica. A minimum-cost flow over integers. Thread: any (a pure function).

#include <cstdint>
#include <span>
#include <vector>

#include "eplb/split/exact_split.hpp"

namespace moetier::eplb {

struct locality_problem {
  split_problem split;                                // loads stay empty: the clusters' sum counts
  std::span<const std::uint32_t> worker_cluster;      // by worker
  std::span<const std::vector<std::uint64_t>> loads;  // [source cluster][expert]
  double slack = 1.02;                                // of the exact split's limit
};

struct locality_outcome {
  std::vector<std::vector<std::uint32_t>> units;  // [source cluster][slot]
  double limit = 0;                               // fullest worker, from the units
  double cross_rows_ratio = 0;                    // rows that cross clusters, of all
};

// Requires: every expert with load has a live replica.
locality_outcome locality_shares(const locality_problem& p);

}  // namespace moetier::eplb
