#include "eplb/planner/reference_global.hpp"

#include <algorithm>
#include <queue>

#include "eplb/planner/replication.hpp"
#include "schemas/base/assert.hpp"

namespace moetier::eplb {
namespace {

struct record {
  double size = 0;
  std::uint32_t expert = 0;
};

// One record per replica, by falling size, then rising expert.
std::vector<record> records_of(std::span<const std::uint64_t> loads,
                               std::span<const std::uint32_t> replicas) {
  std::vector<record> all;
  for (std::uint32_t e = 0; e < loads.size(); ++e)
    all.insert(all.end(), replicas[e], {static_cast<double>(loads[e]) / replicas[e], e});
  std::stable_sort(all.begin(), all.end(),
                   [](const record& a, const record& b) { return a.size > b.size; });
  return all;
}

// Fullness of the workers while records are dealt out.
struct dealing {
  explicit dealing(const slot_layout& l)
      : layout(l), slots(l.slots(), -1), used(l.workers(), 0), load(l.workers(), 0) {}

  void put(std::uint32_t g, const record& r) {
    slots[layout.first(g) + used[g]++] = static_cast<std::int32_t>(r.expert);
    load[g] += r.size;
  }
  bool has_room(std::uint32_t g) const { return used[g] < layout.count(g); }

  const slot_layout& layout;
  std::vector<std::int32_t> slots;
  std::vector<std::uint32_t> used;
  std::vector<double> load;
};

// All free slots are on workers that hold the expert already: one of them takes an expert it lacks
// from another worker, which takes this one instead.
bool put_by_exchange(dealing& d, const record& r, std::span<const double> size_of) {
  const slot_layout& layout = d.layout;
  for (std::uint32_t g = 0; g < layout.workers(); ++g) {
    if (!d.has_room(g)) continue;
    for (std::uint32_t h = 0; h < layout.workers(); ++h) {
      if (h == g || holds(layout, d.slots, h, r.expert)) continue;
      for (std::uint32_t s = layout.first(h); s < layout.first(h) + d.used[h]; ++s) {
        const auto moved = static_cast<std::uint32_t>(d.slots[s]);
        if (holds(layout, d.slots, g, moved)) continue;
        d.put(g, {size_of[moved], moved});
        d.slots[s] = static_cast<std::int32_t>(r.expert);
        d.load[h] += r.size - size_of[moved];
        return true;
      }
    }
  }
  return false;
}

}  // namespace

std::vector<std::int32_t> reference_global(std::span<const std::uint64_t> loads,
                                           const slot_layout& layout) {
  const auto replicas = replicate(loads, layout.slots());
  dealing d(layout);
  using place = std::pair<double, std::uint32_t>;  // least load, then smaller worker
  std::priority_queue<place, std::vector<place>, std::greater<place>> open;
  for (std::uint32_t g = 0; g < layout.workers(); ++g) open.emplace(0, g);
  for (const record& r : records_of(loads, replicas)) {
    const std::uint32_t g = open.top().second;
    open.pop();
    d.put(g, r);
    if (d.has_room(g)) open.emplace(d.load[g], g);
  }
  return std::move(d.slots);
}

std::vector<std::int32_t> reference_distinct(std::span<const std::uint64_t> loads,
                                             const slot_layout& layout) {
  const auto replicas = replicate(loads, layout.slots(), layout.workers());
  std::vector<double> size_of(loads.size());
  for (std::size_t e = 0; e < loads.size(); ++e)
    size_of[e] = static_cast<double>(loads[e]) / replicas[e];
  dealing d(layout);
  std::vector<bool> placed(loads.size(), false);
  for (const record& r : records_of(loads, replicas)) {
    std::int64_t best = -1;
    for (std::uint32_t g = 0; g < layout.workers(); ++g) {
      if (!d.has_room(g) || (best >= 0 && d.load[g] >= d.load[static_cast<std::size_t>(best)]))
        continue;
      if (!holds(layout, d.slots, g, r.expert)) best = g;
    }
    if (best >= 0) {
      d.put(static_cast<std::uint32_t>(best), r);
    } else if (!put_by_exchange(d, r, size_of)) {
      MOETIER_ASSERT(placed[r.expert]);  // only a further replica can be without a place
      continue;
    }
    placed[r.expert] = true;
  }
  return std::move(d.slots);
}

replica_tables tables_of(std::span<const std::int32_t> slots, std::uint32_t experts) {
  replica_tables t;
  t.offset.assign(experts + 1, 0);
  for (const std::int32_t e : slots) {
    if (e >= 0) ++t.offset[static_cast<std::size_t>(e) + 1];
  }
  for (std::uint32_t e = 0; e < experts; ++e) t.offset[e + 1] += t.offset[e];
  t.slots.resize(t.offset[experts]);
  std::vector<std::uint32_t> next(t.offset.begin(), t.offset.end() - 1);
  for (std::uint32_t s = 0; s < slots.size(); ++s) {
    if (slots[s] >= 0) t.slots[next[static_cast<std::size_t>(slots[s])]++] = s;
  }
  return t;
}

std::vector<double> even_loads(std::span<const std::uint64_t> loads, const slot_layout& layout,
                               std::span<const std::int32_t> slots) {
  std::vector<std::uint32_t> replicas(loads.size(), 0);
  for (const std::int32_t e : slots) {
    if (e >= 0) ++replicas[static_cast<std::size_t>(e)];
  }
  std::vector<double> x(layout.workers(), 0);
  for (std::uint32_t s = 0; s < slots.size(); ++s) {
    if (slots[s] < 0) continue;
    const auto e = static_cast<std::size_t>(slots[s]);
    x[layout.worker_of(s)] += static_cast<double>(loads[e]) / replicas[e];
  }
  return x;
}

}  // namespace moetier::eplb
