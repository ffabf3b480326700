#include "coordinator/rpc/layer_load.hpp"

#include <algorithm>
#include <numeric>

#include "schemas/base/assert.hpp"

namespace moetier::coordinator {
namespace {

// Rows that a slot of a worker has taken; a worker that has not told yet took none.
std::uint64_t rows_of(const worker_view& w, std::size_t layer, std::size_t slot) noexcept {
  if (layer >= w.counts.size() || slot >= w.counts[layer].size()) return 0;
  return w.counts[layer][slot];
}

}  // namespace

std::uint64_t layer_load::total() const noexcept {
  return std::accumulate(rows.begin(), rows.end(), std::uint64_t{0});
}

std::vector<expert_load> expert_loads(const tier_view& view, std::size_t layer_index) {
  MOETIER_ASSERT(view.snapshot != nullptr);
  const auto& placement = view.snapshot->placement;
  MOETIER_ASSERT(layer_index < placement.layers().size());
  std::vector<expert_load> loads(view.snapshot->model.experts);
  for (std::uint32_t e = 0; e < loads.size(); ++e) loads[e].expert = e;
  for (std::size_t w = 0; w < view.workers.size(); ++w) {
    const worker_view& worker = view.workers[w];
    const int span = placement.span_index(worker.worker);
    if (span < 0) continue;  // its place is not in this plan
    const std::uint32_t first = placement.first_dense(static_cast<std::size_t>(span));
    const std::uint32_t slots = placement.spans()[static_cast<std::size_t>(span)].slots;
    for (std::uint32_t slot = 0; slot < slots; ++slot) {
      const std::int32_t expert = placement.layers()[layer_index].experts[first + slot];
      if (expert < 0 || static_cast<std::size_t>(expert) >= loads.size()) continue;
      const std::uint64_t rows = rows_of(worker, layer_index, slot);
      expert_load& load = loads[static_cast<std::size_t>(expert)];
      load.rows += rows;
      load.places.push_back({w, slot, rows});
    }
  }
  std::stable_sort(loads.begin(), loads.end(),
                   [](const expert_load& a, const expert_load& b) { return a.rows > b.rows; });
  return loads;
}

std::vector<layer_load> layer_loads(const tier_view& view) {
  if (view.snapshot == nullptr) return {};
  std::vector<layer_load> all;
  const auto& layers = view.snapshot->placement.layers();
  for (std::size_t l = 0; l < layers.size(); ++l) {
    layer_load load{.layer = layers[l].layer, .rows = {}};
    std::uint64_t live = 0;
    std::uint64_t live_rows = 0;
    std::uint64_t most = 0;
    for (const worker_view& w : view.workers) {
      std::uint64_t rows = 0;
      for (std::uint32_t slot = 0; slot < w.slots; ++slot) rows += rows_of(w, l, slot);
      load.rows.push_back(rows);
      if (w.state == worker_state::lost) continue;
      ++live;
      live_rows += rows;
      most = std::max(most, rows);
    }
    if (most != 0) {
      load.balancedness =
          static_cast<double>(live_rows) / static_cast<double>(live) / static_cast<double>(most);
    }
    const auto experts = expert_loads(view, l);
    if (!experts.empty()) {
      load.hottest = experts.front().expert;
      load.hottest_rows = experts.front().rows;
    }
    all.push_back(std::move(load));
  }
  return all;
}

}  // namespace moetier::coordinator
