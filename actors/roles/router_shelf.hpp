#pragma once
// The routers of the served model, read from the checkpoint when a layer's is first asked for and
// kept from then on: for gates that the tier computes. Thread: any; a read blocks only those who
// ask meanwhile.

#include <map>
#include <mutex>

#include "transport/client/source/layer_router.hpp"
#include "workers/weights/checkpoint.hpp"

namespace moetier::roles {

class router_shelf final {
 public:
  // Requires: `files` outlives the shelf and was opened with routers.
  explicit router_shelf(const workers::checkpoint& files) : files_(files) {}

  expected<client::layer_router_ptr> get(std::size_t moe_index);

 private:
  const workers::checkpoint& files_;
  std::mutex mutex_;
  std::map<std::size_t, client::layer_router_ptr> held_;
};

}  // namespace moetier::roles
