#pragma once
// What kernels::lora_call::experts wants, for every layer of one generation's table: by (place of
// the adapter in its set, local slot) the matrices that change the expert in that slot, or nullptr.
// Made anew when the table or the set changes. Thread: engine (the layer's owner).

#include <span>
#include <vector>

#include "workers/store/adapter_set.hpp"
#include "workers/store/generation_table.hpp"

namespace moetier::workers {

class adapter_tables final {
 public:
  adapter_tables() = default;
  // `adapters` may be null. Requires: both outlive this; layer index l of the table is MoE layer
  // index l of the model.
  adapter_tables(const generation_table& table, const adapter_set* adapters);

  // Empty when there are no adapters.
  std::span<const kernels::lora_expert* const> experts(std::size_t layer_index) const noexcept;

 private:
  std::vector<std::vector<const kernels::lora_expert*>> layers_;
};

}  // namespace moetier::workers
