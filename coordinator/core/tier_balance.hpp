#pragma once
// How evenly a window's load lay on the live workers, layer by layer: realised (what they served),
// planned (the same experts' loads, split as the shares say), and how much of what any placement
// could reach was realised. By the definitions of eplb/balance; a window is one step here. Thread:
// any (a pure function).

#include <vector>

#include "coordinator/core/load_window.hpp"
#include "transport/snapshot/routing_snapshot.hpp"

namespace moetier::coordinator {

struct layer_balance {
  layer_id layer;
  bool loaded = false;  // the others are 1 where nothing was served
  double realised = 1;
  double planned = 1;
  double optimal = 1;  // lower bound / largest realised load
};

struct tier_balance {
  std::vector<layer_balance> layers;

  struct summary {
    double mean = 1;
    double worst = 1;
  };
  // Over the layers that were loaded.
  summary over(double layer_balance::*what) const;
};

// Empty unless the window is of the snapshot's generation.
tier_balance balance_of(const transport::routing_snapshot& snapshot, const window_loads& window);

}  // namespace moetier::coordinator
