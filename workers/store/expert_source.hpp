#pragma once
// (interface) Where the bytes of an expert come from: a checkpoint, or a fake in a test. The store
// asks; it never learns of files. An implementation owns its files and buffers nothing.
// Thread: owner of the store (one call at a time).

#include <cstddef>
#include <span>

#include "schemas/base/error.hpp"
#include "schemas/base/ids.hpp"

namespace moetier::workers {

// Room for the three matrices of one expert in canonical bytes (schemas/model/weight_format.hpp):
// gate, up [I, H], down [H, I]. gate is empty where the activation has none; biases are empty
// unless the model's experts have them (gate_bias also where there is no gate).
struct expert_buffers {
  std::span<std::byte> gate;
  std::span<std::byte> up;
  std::span<std::byte> down;
  std::span<float> gate_bias{};  // [I]
  std::span<float> up_bias{};    // [I]
  std::span<float> down_bias{};  // [H]
};

class expert_source {
 public:
  virtual ~expert_source() = default;

  // Fills all of them, or returns what is wrong by layer, expert and tensor. Experts E and above
  // are the shared pseudo-experts, where the model has them.
  virtual expected<void> load(layer_id layer, expert_id expert, const expert_buffers& into) = 0;
};

}  // namespace moetier::workers
