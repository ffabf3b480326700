#pragma once
// Low-rank adapters of routed experts as the engine computes with them: each one a block of f32
// matrices and, by (MoE layer index, expert), where the six of an expert lie in it. Immutable; a
// set replaces another whole, and what nobody holds any more is freed.
// Thread: any (immutable values behind shared_ptr<const>).

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernels/backend.hpp"

namespace moetier::workers {

struct adapter_expert {
  std::uint32_t layer_index = 0;  // MoE layer of the model
  std::uint32_t expert = 0;
  kernels::lora_expert matrices;  // into the adapter's values
};

struct adapter {
  std::vector<float> values;
  std::vector<adapter_expert> experts;  // ascending by (layer_index, expert)

  adapter() = default;
  adapter(const adapter&) = delete;  // the experts point into the values
  adapter& operator=(const adapter&) = delete;

  // nullptr when it does not touch that expert.
  const kernels::lora_expert* find(std::uint32_t layer_index, std::uint32_t expert) const noexcept;
};
using adapter_ptr = std::shared_ptr<const adapter>;

struct adapter_set {
  struct entry {
    std::uint32_t id = 0;  // what rows name
    adapter_ptr content;
  };
  std::vector<entry> entries;  // ascending by id

  // Place of the id in `entries`, or -1.
  std::int32_t index_of(std::int32_t id) const noexcept;
  // The set with this one in it, in place of one of the same id, or without it (content null).
  adapter_set with(std::uint32_t id, adapter_ptr content) const;
};

}  // namespace moetier::workers
