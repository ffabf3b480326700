#pragma once
// What every attached source is doing: per (source, micro-batch) the layer visit that is open, per
// layer what was already taken. It runs the hooks and refuses what the order forbids: each (step,
// attempt, layer, micro-batch, repeat, chunk) is taken once, repeats never fall, steps and attempts
// never go back. On independent carriers a worker sees only the chunks that have rows for it, so a
// visit ends with the last repeat's last chunk or when its source moves on.
// Thread: engine. Allocates at attach only.

#include <bitset>
#include <cstdint>
#include <vector>

#include "schemas/base/limits.hpp"
#include "transport/communication.hpp"
#include "workers/layer/layer_hooks.hpp"

namespace moetier::workers {

inline constexpr std::uint32_t k_chunks_max = 256;  // of one call

class visit_ledger final {
 public:
  visit_ledger(std::uint32_t sources_max, LayerHooks& hooks);

  // A new source, or a new incarnation of one: starts clean. layers: MoE layers of the model.
  void attach(source_id source, std::uint32_t layers);
  // Ends what is open, with the hooks it owes.
  void detach(source_id source);

  // False: the order forbids it, nothing changed. True: taken; runs enter and ready if it opens a
  // visit, after ending the visit that was open.
  bool begin(source_id source, const transport::exchange_key& key, std::uint32_t layer_index);
  // After the rows are computed: ends the visit if this was its last chunk.
  void end(source_id source, const transport::exchange_key& key);

 private:
  struct taken {
    std::uint64_t step = 0;
    std::uint8_t attempt = 0;
    std::uint16_t repeat_idx = 0;
    bool any = false;
    std::bitset<k_chunks_max> chunks;
  };
  struct lane {  // one micro-batch of one source
    std::uint64_t step = 0;
    std::uint8_t attempt = 0;
    bool open = false;
    layer_visit visit;
    std::vector<taken> layers;
  };
  struct row {
    bool attached = false;
    lane lanes[k_micro_batches_max];
  };

  void close(lane& at);

  LayerHooks& hooks_;
  std::vector<row> rows_;  // by source id
};

}  // namespace moetier::workers
