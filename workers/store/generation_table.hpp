#pragma once
// Where one generation's experts lie: an immutable table (layer, local slot) -> page, expert and
// checksum. Made by the expert store when all of its pages are verified; the engine computes
// through it for as long as it holds the pointer. It owns no page: the store and its pool outlive
// every table, and a page named by a table is not written before the engine has given that table
// back and the store was told to release it.
// Thread: any (an immutable value behind shared_ptr<const>).

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "schemas/base/ids.hpp"

namespace moetier::workers {

// What one layer of a plan asks of this worker: the expert of each local slot, k_no_expert = empty.
struct layer_slots {
  layer_id layer;
  std::vector<std::int32_t> experts;

  bool operator==(const layer_slots&) const = default;
};

// One filled local slot. A default value is an empty slot.
struct slot_content {
  const std::byte* page = nullptr;
  std::uint64_t checksum = 0;  // XXH3-64 of the whole page
};

class generation_table final {
 public:
  // `contents` by (layer index, local slot), layers one after the other, each with `shared` slots
  // of shared pseudo-experts behind its own. Requires: as many contents as slots over all layers,
  // and shared ones; layers ascend; empty slots have no page, shared ones have.
  generation_table(generation_number generation, plan_hash plan, std::vector<layer_slots> layers,
                   std::span<const slot_content> contents, std::uint32_t shared = 0);

  generation_number generation() const noexcept { return generation_; }
  plan_hash plan() const noexcept { return plan_; }

  std::size_t layers() const noexcept { return layers_.size(); }
  // Layer index of `layer`, or -1 if this plan does not hold it.
  int index_of(layer_id layer) const noexcept;
  layer_id layer_at(std::size_t layer_index) const noexcept { return layers_[layer_index].layer; }
  // Slots of the plan; the shared ones follow them and are not counted.
  std::uint32_t slots(std::size_t layer_index) const noexcept;
  std::uint32_t shared_slots() const noexcept { return shared_; }
  // Position of a layer's local slot 0 in checksums() and in counts of the same order.
  std::size_t first_position(std::size_t layer_index) const noexcept { return start_[layer_index]; }

  // What kernels::expert_call::pages wants: local slot -> page, nullptr = empty slot; the shared
  // pseudo-expert E + i lies at local slot slots() + i.
  std::span<const std::byte* const> pages(std::size_t layer_index) const noexcept;
  std::span<const std::int32_t> experts(std::size_t layer_index) const noexcept {
    return layers_[layer_index].experts;
  }
  // Of all layers' own slots, one after the other, as `prepared` carries them; 0 = empty slot.
  std::span<const std::uint64_t> checksums() const noexcept { return checksums_; }
  // Of the shared slots, layer after layer.
  std::span<const std::uint64_t> shared_checksums() const noexcept { return shared_checksums_; }
  // XXH3-64 of those, equal on all workers; 0 = none.
  std::uint64_t shared_digest() const noexcept;
  std::span<const layer_slots> plan_rows() const noexcept { return layers_; }

 private:
  generation_number generation_;
  plan_hash plan_;
  std::vector<layer_slots> layers_;
  std::uint32_t shared_;
  std::vector<std::size_t> start_;  // first index of a layer in checksums_; one more at the end
  std::vector<const std::byte*> pages_;  // with the shared ones behind each layer's
  std::vector<std::uint64_t> checksums_;
  std::vector<std::uint64_t> shared_checksums_;
};

}  // namespace moetier::workers
