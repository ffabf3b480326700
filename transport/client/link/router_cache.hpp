#pragma once
// The routers that a client has fetched, for all sessions of one service. Thread: any; a fetch
// blocks only callers that want the same service's routers.

#include <map>
#include <mutex>

#include "transport/client/link/tier_link.hpp"

namespace moetier::client {

class router_cache final {
 public:
  // Requires: the link outlives the cache.
  explicit router_cache(tier_link& link) : link_(link) {}

  expected<layer_router_ptr> get(layer_id layer) {
    const std::lock_guard lock(mutex_);
    layer_router_ptr& held = held_[layer];
    if (held == nullptr) {
      auto fetched = link_.router(layer, k_limit);
      if (!fetched) return fetched;
      held = std::move(*fetched);
    }
    return held;
  }

 private:
  static constexpr duration_ns k_limit = 10 * k_second;

  tier_link& link_;
  std::mutex mutex_;
  std::map<layer_id, layer_router_ptr> held_;
};

}  // namespace moetier::client
