#include "eplb/planner/window_wrap.hpp"

#include <algorithm>
#include <numeric>

#include "eplb/limits.hpp"
#include "eplb/planner/reference_global.hpp"
#include "eplb/split/share_rounding.hpp"
#include "schemas/base/assert.hpp"
#include "schemas/base/limits.hpp"

namespace moetier::eplb {
namespace {

__extension__ using wide = unsigned __int128;

struct item {
  std::uint64_t load = 0;    // times the number of workers
  std::int32_t expert = -1;  // -1 = an empty item

  // By load; empty ones first; then by id.
  bool operator<(const item& other) const {
    return load != other.load ? load < other.load : expert < other.expert;
  }
};

// Workers in rising (usable slots, id).
std::vector<std::uint32_t> order_of(const std::vector<std::uint32_t>& usable) {
  std::vector<std::uint32_t> order(usable.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return usable[a] < usable[b]; });
  return order;
}

// A worker's slots while it is filled.
struct shelf {
  const slot_layout& layout;
  wrapped_layer& into;
  std::vector<item> own;

  void put(const item& i) {
    if (i.expert >= 0) own.push_back(i);
  }
  void close(std::uint32_t g) {
    std::sort(own.begin(), own.end(),
              [](const item& a, const item& b) { return a.expert < b.expert; });
    for (std::size_t i = 0; i < own.size(); ++i) {
      into.slots[layout.first(g) + i] = own[i].expert;
      into.amounts[layout.first(g) + i] = own[i].load;
    }
    own.clear();
  }
};

}  // namespace

std::optional<wrapped_layer> window_wrap(std::span<const std::uint64_t> loads,
                                         const slot_layout& layout, spare_fill fill) {
  const auto experts = static_cast<std::uint32_t>(loads.size());
  const std::uint32_t workers = layout.workers();
  MOETIER_ASSERT(experts > 0);
  std::vector<std::uint32_t> usable(workers);
  std::uint32_t slots = 0;
  for (std::uint32_t g = 0; g < workers; ++g) {
    usable[g] = std::min(layout.count(g), 1 + layout.count_least());
    slots += usable[g];
  }
  if (slots < experts + workers - 1) return std::nullopt;

  wide mean = 0;  // of the loads times the number of workers: the sum of the loads
  for (const std::uint64_t w : loads) mean += w;
  const bool none = mean == 0;
  if (none) mean = experts;
  std::vector<item> items(slots - workers + 1);
  for (std::uint32_t e = 0; e < experts; ++e) {
    const std::uint64_t w = none ? 1 : loads[e];
    MOETIER_ASSERT(w <= k_load_max / workers);
    items[e] = {w * workers, static_cast<std::int32_t>(e)};
  }
  std::sort(items.begin(), items.end());

  wrapped_layer out{std::vector<std::int32_t>(layout.slots(), -1),
                    std::vector<std::uint64_t>(layout.slots(), 0)};
  shelf s{layout, out, {}};
  const auto order = order_of(usable);
  for (std::size_t turn = 0; turn + 1 < order.size(); ++turn) {
    const std::uint32_t k = usable[order[turn]];
    wide sum = 0;
    for (std::size_t i = 0; i + 1 < k; ++i) sum += items[i].load;
    std::size_t j = 0;
    while (sum + items[j + k - 1].load < mean) {
      sum += items[j + k - 1].load;
      sum -= items[j].load;
      ++j;
      MOETIER_ASSERT(j + k - 1 < items.size());  // the k largest sum to the mean or more
    }
    MOETIER_ASSERT(sum <= mean);
    for (std::size_t i = j; i < j + k - 1; ++i) s.put(items[i]);
    const auto part = static_cast<std::uint64_t>(mean - sum);
    item rest = items[j + k - 1];
    if (part > 0) {
      s.put({part, rest.expert});
      rest.load -= part;
      if (rest.load == 0) rest.expert = -1;
    }
    s.close(order[turn]);
    // The window leaves; the rest moves down to where it is in order.
    auto hole = items.begin() + static_cast<std::ptrdiff_t>(j);
    const auto place = std::lower_bound(items.begin(), hole, rest);
    std::move_backward(place, hole, hole + 1);
    *place = rest;
    items.erase(hole + 1, hole + static_cast<std::ptrdiff_t>(k));
  }
  MOETIER_ASSERT(items.size() == usable[order.back()]);
  for (const item& i : items) s.put(i);
  s.close(order.back());
  fill_spares(loads, layout, fill, out.slots);
  // Filling keeps slots in rising order only where nothing was empty: sort each worker again.
  for (std::uint32_t g = 0; g < workers; ++g) {
    const std::uint32_t first = layout.first(g);
    if (std::is_sorted(out.slots.begin() + first, out.slots.begin() + first + layout.count(g)))
      continue;
    for (std::uint32_t i = first; i < first + layout.count(g); ++i)
      s.put({out.amounts[i], out.slots[i]});
    std::fill_n(out.slots.begin() + first, layout.count(g), -1);
    std::fill_n(out.amounts.begin() + first, layout.count(g), 0U);
    s.close(g);
  }
  return out;
}

void fill_spares(std::span<const std::uint64_t> loads, const slot_layout& layout, spare_fill fill,
                 std::span<std::int32_t> slots) {
  if (std::find(slots.begin(), slots.end(), -1) == slots.end()) return;
  std::vector<std::uint32_t> replicas(loads.size(), 0);
  for (const std::int32_t e : slots) {
    if (e >= 0) ++replicas[static_cast<std::size_t>(e)];
  }
  std::vector<bool> here(loads.size());
  const auto before = [&](std::size_t a, std::size_t b) {
    if (fill == spare_fill::survival && (replicas[a] == 1) != (replicas[b] == 1))
      return replicas[a] == 1;
    return static_cast<double>(loads[a]) / replicas[a] >
           static_cast<double>(loads[b]) / replicas[b];
  };
  for (std::uint32_t g = 0; g < layout.workers(); ++g) {
    const auto own = slots.subspan(layout.first(g), layout.count(g));
    if (std::find(own.begin(), own.end(), -1) == own.end()) continue;
    std::fill(here.begin(), here.end(), false);
    for (const std::int32_t e : own) {
      if (e >= 0) here[static_cast<std::size_t>(e)] = true;
    }
    for (std::int32_t& slot : own) {
      if (slot >= 0) continue;
      std::size_t best = loads.size();
      for (std::size_t e = 0; e < loads.size(); ++e) {
        if (!here[e] && replicas[e] > 0 && (best == loads.size() || before(e, best))) best = e;
      }
      if (best == loads.size()) break;
      slot = static_cast<std::int32_t>(best);
      here[best] = true;
      ++replicas[best];
    }
  }
}

std::vector<std::uint32_t> units_of(std::span<const std::int32_t> slots,
                                    std::span<const std::uint64_t> amounts, std::uint32_t experts) {
  MOETIER_ASSERT(slots.size() == amounts.size());
  const replica_tables tables = tables_of(slots, experts);
  std::vector<std::uint32_t> units(slots.size(), 0);
  std::vector<std::uint64_t> given;
  std::vector<std::uint32_t> rounded;
  for (std::uint32_t e = 0; e < experts; ++e) {
    const std::uint32_t count = tables.offset[e + 1] - tables.offset[e];
    if (count == 0) continue;
    const auto own = std::span(tables.slots).subspan(tables.offset[e], count);
    if (count == 1) {
      units[own[0]] = k_shares_unit;
      continue;
    }
    given.clear();
    for (const std::uint32_t s : own) given.push_back(amounts[s]);
    rounded.resize(count);
    round_shares(given, rounded);
    for (std::uint32_t i = 0; i < count; ++i) units[own[i]] = rounded[i];
  }
  return units;
}

}  // namespace moetier::eplb
