#include "workers/store/generation_table.hpp"

#include <algorithm>
#include <utility>

#include "schemas/base/assert.hpp"
#include "schemas/base/checksum.hpp"

namespace moetier::workers {

generation_table::generation_table(generation_number generation, plan_hash plan,
                                   std::vector<layer_slots> layers,
                                   std::span<const slot_content> contents, std::uint32_t shared)
    : generation_(generation), plan_(plan), layers_(std::move(layers)), shared_(shared) {
  start_.reserve(layers_.size() + 1);
  start_.push_back(0);
  for (const layer_slots& row : layers_) start_.push_back(start_.back() + row.experts.size());
  MOETIER_ASSERT(contents.size() == start_.back() + layers_.size() * shared_);
  MOETIER_ASSERT(std::is_sorted(layers_.begin(), layers_.end(),
                                [](const auto& a, const auto& b) { return a.layer < b.layer; }));
  pages_.reserve(contents.size());
  checksums_.reserve(start_.back());
  std::size_t next = 0;
  for (const layer_slots& row : layers_) {
    for (const std::int32_t expert : row.experts) {
      const slot_content& content = contents[next++];
      MOETIER_ASSERT((expert == k_no_expert) == (content.page == nullptr));
      pages_.push_back(content.page);
      checksums_.push_back(content.checksum);
    }
    for (std::uint32_t i = 0; i < shared_; ++i) {
      const slot_content& content = contents[next++];
      MOETIER_ASSERT(content.page != nullptr);
      pages_.push_back(content.page);
      shared_checksums_.push_back(content.checksum);
    }
  }
}

int generation_table::index_of(layer_id layer) const noexcept {
  const auto at =
      std::lower_bound(layers_.begin(), layers_.end(), layer,
                       [](const layer_slots& row, layer_id wanted) { return row.layer < wanted; });
  if (at == layers_.end() || at->layer != layer) return -1;
  return static_cast<int>(at - layers_.begin());
}

std::uint64_t generation_table::shared_digest() const noexcept {
  return shared_ == 0 ? 0 : xxh3_64(std::as_bytes(shared_checksums()));
}

std::uint32_t generation_table::slots(std::size_t layer_index) const noexcept {
  return static_cast<std::uint32_t>(layers_[layer_index].experts.size());
}

std::span<const std::byte* const> generation_table::pages(std::size_t layer_index) const noexcept {
  MOETIER_DEBUG_ASSERT(layer_index < layers_.size());
  return std::span(pages_).subspan(start_[layer_index] + layer_index * shared_,
                                   layers_[layer_index].experts.size() + shared_);
}

}  // namespace moetier::workers
