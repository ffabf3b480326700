#include "eplb/plan_check.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

#include <fmt/core.h>

#include "eplb/limits.hpp"
#include "eplb/slot_layout.hpp"
#include "schemas/base/limits.hpp"

namespace moetier::eplb {
namespace {

unexpected_error refuse(const std::string& what) { return fail(reason::placement_invalid, what); }

struct judge {
  const plan_draft& d;
  const plan_terms& t;
  const slot_layout& layout;

  bool live(std::uint32_t g) const { return t.live.empty() || t.live[g] != 0; }
  bool draining(std::uint32_t g) const { return !t.draining.empty() && t.draining[g] != 0; }
  bool filled(std::size_t layer, std::uint32_t slot) const {
    return t.filled.empty() || t.filled[layer * layout.slots() + slot] != 0;
  }

  expected<void> check_slots(std::size_t i) const {
    const draft_layer& l = d.layers[i];
    if (l.slots.size() != layout.slots()) {
      return refuse(fmt::format("layer {} lists {} slots; the workers have {}", l.layer.value,
                                l.slots.size(), layout.slots()));
    }
    std::vector<std::int64_t> worker_with(d.experts, -1);
    std::vector<bool> usable(d.experts, false);
    for (std::uint32_t s = 0; s < l.slots.size(); ++s) {
      const std::int32_t e = l.slots[s];
      const std::uint32_t g = layout.worker_of(s);
      if (e < -1 || e >= static_cast<std::int64_t>(d.experts)) {
        return refuse(
            fmt::format("layer {} slot {} names expert {}; allowed: -1 (empty) or 0 to {}",
                        l.layer.value, s, e, d.experts - 1));
      }
      if (e < 0) continue;
      auto& with = worker_with[static_cast<std::size_t>(e)];
      if (with == g)
        return refuse(fmt::format("layer {} worker {} holds expert {} twice", l.layer.value, g, e));
      with = g;
      if (live(g) && filled(i, s)) usable[static_cast<std::size_t>(e)] = true;
    }
    for (std::uint32_t e = 0; e < d.experts; ++e) {
      if (worker_with[e] < 0)
        return refuse(fmt::format("layer {} has no slot for expert {}", l.layer.value, e));
      if (!usable[e]) {
        return refuse(fmt::format("layer {} expert {} has no live slot whose bytes are there",
                                  l.layer.value, e));
      }
    }
    return {};
  }

  expected<void> check_shares(std::size_t i) const {
    const draft_layer& l = d.layers[i];
    if (l.units.empty()) return {};
    if (l.units.size() != layout.slots()) {
      return refuse(fmt::format("layer {} has shares for {} slots; the workers have {}",
                                l.layer.value, l.units.size(), layout.slots()));
    }
    std::vector<std::uint64_t> sum(d.experts, 0);
    for (std::uint32_t s = 0; s < l.units.size(); ++s) {
      if (l.units[s] == 0) continue;
      const std::uint32_t g = layout.worker_of(s);
      const auto wrong = [&](const char* why) {
        return refuse(fmt::format("layer {} slot {} {}", l.layer.value, s, why));
      };
      if (l.slots[s] < 0) return wrong("is empty but has a share");
      if (!live(g)) return wrong("has a share, but its worker is dead");
      if (draining(g)) return wrong("has a share, but its worker drains");
      if (!filled(i, s)) return wrong("has a share, but nobody brings its bytes");
      sum[static_cast<std::size_t>(l.slots[s])] += l.units[s];
    }
    for (std::uint32_t e = 0; e < d.experts; ++e) {
      if (sum[e] != k_shares_unit) {
        return refuse(fmt::format("layer {} expert {}: shares sum to {}; they must sum to {}",
                                  l.layer.value, e, sum[e], k_shares_unit));
      }
    }
    return {};
  }

  expected<void> check_loads(std::size_t i) const {
    for (std::uint32_t e = 0; !t.loads.empty() && e < d.experts; ++e) {
      const std::uint64_t w = t.loads[i * d.experts + e];
      if (w > k_load_max / layout.workers()) {
        return refuse(fmt::format("layer {} expert {} has load {}; at most {} over {} workers",
                                  d.layers[i].layer.value, e, w, k_load_max / layout.workers(),
                                  layout.workers()));
      }
    }
    return {};
  }
};

}  // namespace

expected<void> check_plan(const plan_draft& d, const plan_terms& t) {
  if (d.experts == 0 || d.experts > k_experts_max)
    return refuse(fmt::format("{} experts; 1 to {} are allowed", d.experts, k_experts_max));
  const auto layout = slot_layout::make(d.slots_per_worker);
  if (!layout) return unexpected_error(layout.error());
  if (!std::equal(d.slots_per_worker.begin(), d.slots_per_worker.end(), t.slots_per_worker.begin(),
                  t.slots_per_worker.end())) {
    for (std::size_t g = 0; g < std::min(d.slots_per_worker.size(), t.slots_per_worker.size()); ++g)
      if (d.slots_per_worker[g] != t.slots_per_worker[g]) {
        return refuse(fmt::format("worker {} gets {} slots; it has registered {}", g,
                                  d.slots_per_worker[g], t.slots_per_worker[g]));
      }
    return refuse(fmt::format("it is for {} workers; {} have registered", d.slots_per_worker.size(),
                              t.slots_per_worker.size()));
  }
  if (!layout->uniform() && !t.uneven_allowed) {
    return refuse(
        fmt::format("{} slots over {} workers are uneven, which backend and carrier have "
                    "not declared",
                    layout->slots(), layout->workers()));
  }
  if (d.layers.size() > k_layers_max)
    return refuse(fmt::format("{} layers; at most {}", d.layers.size(), k_layers_max));
  const judge j{d, t, *layout};
  for (std::size_t i = 0; i < d.layers.size(); ++i) {
    if (i > 0 && d.layers[i].layer <= d.layers[i - 1].layer) {
      return refuse(fmt::format("layer {} follows layer {}; layers must rise",
                                d.layers[i].layer.value, d.layers[i - 1].layer.value));
    }
    if (auto ok = j.check_slots(i); !ok) return ok;
    if (auto ok = j.check_shares(i); !ok) return ok;
    if (auto ok = j.check_loads(i); !ok) return ok;
  }
  return {};
}

unmet_wishes unmet(const plan_draft& d, const plan_wishes& w) {
  const auto layout = slot_layout::make(d.slots_per_worker);
  unmet_wishes u;
  std::vector<std::uint32_t> replicas(d.experts);
  std::vector<std::int64_t> node(d.experts);  // -1: none yet, -2: several
  for (const draft_layer& l : d.layers) {
    std::fill(replicas.begin(), replicas.end(), 0U);
    std::fill(node.begin(), node.end(), -1);
    for (std::uint32_t s = 0; s < l.slots.size(); ++s) {
      if (l.slots[s] < 0) continue;
      const auto e = static_cast<std::size_t>(l.slots[s]);
      ++replicas[e];
      if (w.node_of_worker.empty()) continue;
      const std::int64_t here = w.node_of_worker[layout->worker_of(s)];
      node[e] = node[e] == -1 || node[e] == here ? here : -2;
    }
    for (std::size_t e = 0; e < d.experts; ++e) {
      if (replicas[e] < w.min_replicas) ++u.experts_below_min_replicas;
      if (replicas[e] > 1 && node[e] >= 0) ++u.experts_on_one_node;
    }
  }
  return u;
}

}  // namespace moetier::eplb
