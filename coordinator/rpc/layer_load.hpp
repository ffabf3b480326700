#pragma once
// How the rows of a generation lie over the workers, layer by layer, and over a layer's experts:
// what the status document, the page and the heat map show. Made from the core's view. Thread: any
// (pure functions).

#include <cstdint>
#include <vector>

#include "coordinator/core/tier_view.hpp"

namespace moetier::coordinator {

struct layer_load {
  layer_id layer;
  std::vector<std::uint64_t> rows;  // by worker, in the view's order
  // Mean load of the workers that are not lost / the largest; 1 = nobody waits; 0 = no rows yet.
  double balancedness = 0;
  std::uint32_t hottest = 0;  // expert with the most rows
  std::uint64_t hottest_rows = 0;

  std::uint64_t total() const noexcept;
};

// One per MoE layer; empty before the first plan.
std::vector<layer_load> layer_loads(const tier_view& view);

struct expert_place {
  std::size_t worker = 0;  // index in the view
  std::uint32_t slot = 0;  // local
  std::uint64_t rows = 0;
};
struct expert_load {
  std::uint32_t expert = 0;
  std::uint64_t rows = 0;
  std::vector<expert_place> places;  // its replicas, by worker and slot
};

// All experts of a layer (by index), most rows first. Requires: view.snapshot is set.
std::vector<expert_load> expert_loads(const tier_view& view, std::size_t layer_index);

}  // namespace moetier::coordinator
