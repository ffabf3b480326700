#include "workers/layer/adapter_tables.hpp"

namespace moetier::workers {

adapter_tables::adapter_tables(const generation_table& table, const adapter_set* adapters) {
  if (adapters == nullptr || adapters->entries.empty()) return;
  layers_.resize(table.layers());
  for (std::size_t layer = 0; layer < layers_.size(); ++layer) {
    const std::size_t pages = table.pages(layer).size();
    const auto experts = table.experts(layer);
    std::vector<const kernels::lora_expert*>& into = layers_[layer];
    into.assign(adapters->entries.size() * pages, nullptr);
    for (std::size_t i = 0; i < adapters->entries.size(); ++i) {
      // Shared pseudo-experts lie behind the plan's slots; no adapter touches them.
      for (std::size_t slot = 0; slot < experts.size(); ++slot) {
        if (experts[slot] == k_no_expert) continue;
        into[i * pages + slot] = adapters->entries[i].content->find(
            static_cast<std::uint32_t>(layer), static_cast<std::uint32_t>(experts[slot]));
      }
    }
  }
}

std::span<const kernels::lora_expert* const> adapter_tables::experts(
    std::size_t layer_index) const noexcept {
  if (layer_index >= layers_.size()) return {};
  return layers_[layer_index];
}

}  // namespace moetier::workers
