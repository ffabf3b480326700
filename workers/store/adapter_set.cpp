#include "workers/store/adapter_set.hpp"

#include <algorithm>
#include <tuple>

namespace moetier::workers {

const kernels::lora_expert* adapter::find(std::uint32_t layer_index,
                                          std::uint32_t expert) const noexcept {
  const auto at = std::lower_bound(experts.begin(), experts.end(), std::tuple(layer_index, expert),
                                   [](const adapter_expert& e, const auto& wanted) {
                                     return std::tuple(e.layer_index, e.expert) < wanted;
                                   });
  if (at == experts.end() || at->layer_index != layer_index || at->expert != expert) return nullptr;
  return &at->matrices;
}

std::int32_t adapter_set::index_of(std::int32_t id) const noexcept {
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (static_cast<std::int64_t>(entries[i].id) == id) return static_cast<std::int32_t>(i);
  }
  return -1;
}

adapter_set adapter_set::with(std::uint32_t id, adapter_ptr content) const {
  adapter_set next;
  for (const entry& e : entries) {
    if (e.id != id) next.entries.push_back(e);
  }
  if (content != nullptr) next.entries.push_back({id, std::move(content)});
  std::sort(next.entries.begin(), next.entries.end(),
            [](const entry& a, const entry& b) { return a.id < b.id; });
  return next;
}

}  // namespace moetier::workers
