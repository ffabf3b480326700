#pragma once
// (interface) Where the bytes of an expert come from: a checkpoint, or a fake in a test. The store
// asks; it never learns of files. An implementation owns its files and buffers nothing.
// Thread: owner of the store (one call at a time).

#include <cstddef>
#include <span>

#include "schemas/base/error.hpp"
#include "schemas/base/ids.hpp"

namespace moetier::workers {

// Room for the three matrices of one expert as they lie in a checkpoint, I * H elements each.
struct expert_buffers {
  std::span<std::byte> gate;
  std::span<std::byte> up;
  std::span<std::byte> down;
};

class expert_source {
 public:
  virtual ~expert_source() = default;

  // Fills all three, or returns what is wrong by layer, expert and tensor.
  virtual expected<void> load(layer_id layer, expert_id expert, const expert_buffers& into) = 0;
};

}  // namespace moetier::workers
