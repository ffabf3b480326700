#include "workers/layer/slot_counts.hpp"

#include "schemas/base/assert.hpp"

namespace moetier::workers {

void slot_counts::reset(const generation_table& table) {
  std::vector<std::size_t> start{0};
  for (std::size_t l = 0; l < table.layers(); ++l) start.push_back(start.back() + table.slots(l));
  auto counts = std::make_unique<std::atomic<std::uint64_t>[]>(start.back());
  const std::lock_guard lock(shape_);
  generation_ = table.generation();
  size_ = start.back();
  start_ = std::move(start);
  counts_ = std::move(counts);
}

void slot_counts::add(generation_number generation, std::size_t layer_index,
                      std::span<const std::uint32_t> per_slot) noexcept {
  // Only the engine resets, and only the engine adds: no lock is needed to read the shape here.
  if (generation != generation_) return;
  MOETIER_DEBUG_ASSERT(start_[layer_index] + per_slot.size() <= size_);
  std::atomic<std::uint64_t>* at = counts_.get() + start_[layer_index];
  for (std::size_t s = 0; s < per_slot.size(); ++s) {
    if (per_slot[s] != 0) at[s].fetch_add(per_slot[s], std::memory_order_relaxed);
  }
}

slot_counts::reading slot_counts::snapshot() const {
  const std::lock_guard lock(shape_);
  reading r{generation_, std::vector<std::uint64_t>(size_)};
  for (std::size_t i = 0; i < size_; ++i) r.counts[i] = counts_[i].load(std::memory_order_relaxed);
  return r;
}

}  // namespace moetier::workers
