#pragma once
// The four hooks around one layer of one step, as the expert load balancer sees them: enter and
// ready before the layer's slots are read, weights_done when this step reads them no more, exit
// when the step lets go of the generation. Each runs once per (source, step, attempt, layer,
// micro-batch), in this order; an aborted visit runs what it owes.
// Thread: engine.

#include <cstdint>

#include "schemas/base/ids.hpp"

namespace moetier::workers {

struct layer_visit {
  session_id session;
  source_id source;
  std::uint64_t step = 0;
  std::uint8_t attempt = 0;
  std::uint16_t micro_batch = 0;
  std::uint32_t layer_index = 0;
  generation_number generation;
};

class LayerHooks {
 public:
  virtual ~LayerHooks() = default;
  virtual void layer_enter(const layer_visit& visit) = 0;
  virtual void layer_ready(const layer_visit& visit) = 0;
  virtual void weights_done(const layer_visit& visit) = 0;
  virtual void layer_exit(const layer_visit& visit) = 0;
};

}  // namespace moetier::workers
