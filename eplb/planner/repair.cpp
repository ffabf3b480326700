#include "eplb/planner/repair.hpp"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "eplb/balance/bound.hpp"
#include "schemas/base/assert.hpp"

namespace moetier::eplb {
namespace {

constexpr std::size_t k_experts_tried = 4;     // most served inside the bottleneck
constexpr std::size_t k_receivers_tried = 4;   // least loaded outside, for a replica
constexpr std::size_t k_victims_tried = 2;     // least served slots of a receiver
constexpr std::size_t k_swap_slots_tried = 8;  // most served inside
constexpr std::size_t k_swap_receivers_tried = 3;
constexpr double k_least_gain = 1e-6;
constexpr double k_speed_one = 65536;

double speed_of(const split_problem& p, std::uint32_t g) {
  return p.speeds.empty() ? 1 : p.speeds[g] / k_speed_one;
}

bool live(const split_problem& p, std::uint32_t g) { return p.live.empty() || p.live[g] != 0; }

// The first `count` of the numbers 0..size-1, by falling key; of equals the smaller number.
template <class Key>
std::vector<std::uint32_t> most(std::size_t size, std::size_t count, Key key) {
  std::vector<std::uint32_t> order(size);
  std::iota(order.begin(), order.end(), 0U);
  count = std::min(count, size);
  std::partial_sort(
      order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count), order.end(),
      [&](std::uint32_t a, std::uint32_t b) { return key(a) != key(b) ? key(a) > key(b) : a < b; });
  order.resize(count);
  return order;
}

}  // namespace

bool repairer::usable(const repair_rules& rules, std::uint32_t slot) const {
  return (rules.rewrite || written_[slot] == 0) && (rules.fixed.empty() || rules.fixed[slot] == 0);
}

// Who serves what, and who is in the bottleneck, after split_.solve().
void repairer::survey(const split_problem& p, std::span<const std::int32_t> slots) {
  const slot_layout& layout = *p.layout;
  replicas_.assign(p.loads.size(), 0);
  inside_.assign(p.loads.size(), 0);
  served_inside_.assign(p.loads.size(), 0);
  worker_load_.assign(layout.workers(), 0);
  served_.assign(layout.slots(), 0);
  cut_load_ = 0;
  cut_speed_ = 0;
  outside_.clear();
  for (std::uint32_t g = 0; g < layout.workers(); ++g) {
    if (!live(p, g)) continue;
    const bool in = split_.bottleneck(g);
    for (std::uint32_t s = layout.first(g); s < layout.first(g) + layout.count(g); ++s) {
      if (slots[s] < 0) continue;
      const auto e = static_cast<std::size_t>(slots[s]);
      served_[s] = split_.served(s);
      worker_load_[g] += served_[s];
      ++replicas_[e];
      if (!in) continue;
      ++inside_[e];
      served_inside_[e] += served_[s];
    }
    worker_load_[g] /= speed_of(p, g);
    if (in) {
      cut_speed_ += speed_of(p, g);
    } else {
      outside_.push_back(g);
    }
  }
  for (std::size_t e = 0; e < p.loads.size(); ++e)
    if (replicas_[e] > 0 && inside_[e] == replicas_[e])
      cut_load_ += static_cast<double>(p.loads[e]);
  std::stable_sort(outside_.begin(), outside_.end(), [&](std::uint32_t a, std::uint32_t b) {
    return worker_load_[a] < worker_load_[b];
  });
}

// What the bottleneck's workers would still have to serve alone, per speed: no placement after the
// move can have a lower limit.
double repairer::bottleneck_after(const split_problem& p, std::span<const std::int32_t> slots,
                                  const candidate& c) const {
  double load = cut_load_;
  if (inside_[c.expert] == replicas_[c.expert]) load -= static_cast<double>(p.loads[c.expert]);
  if (slots[c.slot] >= 0) {
    const auto victim = static_cast<std::size_t>(slots[c.slot]);
    if (inside_[victim] + 1 == replicas_[victim]) load += static_cast<double>(p.loads[victim]);
  }
  return load / cut_speed_;
}

void repairer::offer(const split_problem& p, std::span<const std::int32_t> slots, candidate c) {
  c.bound = bottleneck_after(p, slots, c);
  if (c.bound < limit_ * (1 - k_least_gain)) candidates_.push_back(c);
}

void repairer::gather(const split_problem& p, std::span<const std::int32_t> slots,
                      const repair_rules& rules, std::uint32_t copies_left) {
  const slot_layout& layout = *p.layout;
  candidates_.clear();
  const auto takes = [&](std::uint32_t g) {
    return rules.spare.empty() || taken_[g] < rules.spare[g];
  };
  const auto wanted =
      most(p.loads.size(), k_experts_tried, [&](std::uint32_t e) { return served_inside_[e]; });
  for (std::size_t i = 0; i < std::min(k_receivers_tried, outside_.size()); ++i) {
    const std::uint32_t g = outside_[i];
    if (!takes(g)) continue;
    std::vector<std::uint32_t> victims;  // empty slots count as serving nothing
    for (std::uint32_t s = layout.first(g); s < layout.first(g) + layout.count(g); ++s) {
      const bool spare = slots[s] < 0 || replicas_[static_cast<std::size_t>(slots[s])] > 1;
      if (spare && usable(rules, s)) victims.push_back(s);
    }
    std::stable_sort(victims.begin(), victims.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return served_[a] < served_[b]; });
    if (victims.size() > k_victims_tried)
      victims.erase(victims.begin() + k_victims_tried, victims.end());
    for (const std::uint32_t s : victims) {
      for (const std::uint32_t e : wanted) {
        if (served_inside_[e] > 0 && !holds(layout, slots, g, e)) offer(p, slots, {s, e});
      }
    }
  }
  if (copies_left < 2) return;
  const auto inside = most(slots.size(), k_swap_slots_tried, [&](std::uint32_t s) {
    const std::uint32_t g = layout.worker_of(s);
    const bool in = slots[s] >= 0 && live(p, g) && split_.bottleneck(g);
    return in && usable(rules, s) && takes(g) ? served_[s] : -1.0;
  });
  for (const std::uint32_t from : inside) {
    const std::uint32_t z = layout.worker_of(from);
    if (slots[from] < 0 || !split_.bottleneck(z) || !usable(rules, from) || !takes(z)) continue;
    const auto e = static_cast<std::uint32_t>(slots[from]);
    for (std::size_t i = 0; i < std::min(k_swap_receivers_tried, outside_.size()); ++i) {
      const std::uint32_t g = outside_[i];
      if (!takes(g) || holds(layout, slots, g, e)) continue;
      for (std::uint32_t s = layout.first(g); s < layout.first(g) + layout.count(g); ++s) {
        if (slots[s] < 0 || !usable(rules, s) || served_[s] >= served_[from]) continue;
        if (holds(layout, slots, z, static_cast<std::uint32_t>(slots[s]))) continue;
        const double receiver = worker_load_[g] + (served_[from] - served_[s]) / speed_of(p, g);
        if (receiver <= limit_) offer(p, slots, {s, e, static_cast<std::int32_t>(from)});
      }
    }
  }
}

repair_outcome repairer::repair(split_problem p, std::span<std::int32_t> slots,
                                const repair_rules& rules) {
  const slot_layout& layout = *p.layout;
  MOETIER_ASSERT(slots.size() == layout.slots() && !p.loads.empty());
  MOETIER_ASSERT(rules.fixed.empty() || rules.fixed.size() == slots.size());
  MOETIER_ASSERT(rules.spare.empty() || rules.spare.size() == layout.workers());
  std::uint32_t live_slots = 0;
  std::uint32_t live_workers = 0;
  for (std::uint32_t g = 0; g < layout.workers(); ++g) {
    if (!live(p, g)) continue;
    live_slots += layout.count(g);
    ++live_workers;
  }
  p.slots = slots;
  repair_outcome out;
  // Too few slots for all experts: those that are lost need none.
  const auto experts = static_cast<std::uint32_t>(p.loads.size());
  out.bound = lower_bound(p.loads, std::max(live_slots, experts), live_workers);
  out.limit_before = limit_ = split_.solve(p);
  taken_.assign(layout.workers(), 0);
  written_.assign(slots.size(), 0);
  if (limit_ <= rules.start * out.bound) {
    out.limit_after = limit_;
    return out;
  }
  while (limit_ > rules.stop * out.bound && out.moves.size() < rules.copies_max) {
    survey(p, slots);
    const auto copies_left = static_cast<std::uint32_t>(rules.copies_max - out.moves.size());
    gather(p, slots, rules, copies_left);
    // Likely ones first; the order of equals is replace, worker (slots rise with it), slot, expert.
    const auto key = [](const candidate& c) {
      return std::tuple(c.back_slot >= 0, c.slot, c.expert, c.back_slot);
    };
    std::stable_sort(candidates_.begin(), candidates_.end(),
                     [&](const candidate& a, const candidate& b) {
                       const double x = (limit_ - a.bound) / (a.back_slot >= 0 ? 2 : 1);
                       const double y = (limit_ - b.bound) / (b.back_slot >= 0 ? 2 : 1);
                       return x != y ? x > y : key(a) < key(b);
                     });
    candidate best;
    double best_score = 0;
    for (const candidate& c : candidates_) {
      const double copies = c.back_slot >= 0 ? 2 : 1;
      const double ceiling = std::min(limit_ * (1 - k_least_gain), limit_ - copies * best_score);
      if (c.bound > ceiling) continue;
      const std::int32_t had = slots[c.slot];
      slots[c.slot] = static_cast<std::int32_t>(c.expert);
      if (c.back_slot >= 0) slots[static_cast<std::size_t>(c.back_slot)] = had;
      if (trial_.fits(p, ceiling)) {
        const double score = (limit_ - trial_.solve(p)) / copies;
        if (score > best_score || (score == best_score && key(c) < key(best))) {
          best_score = score;
          best = c;
        }
      }
      slots[c.slot] = had;
      if (c.back_slot >= 0)
        slots[static_cast<std::size_t>(c.back_slot)] = static_cast<std::int32_t>(c.expert);
    }
    if (best_score <= 0) break;
    const std::int32_t had = slots[best.slot];
    const auto write = [&](std::uint32_t slot, std::int32_t expert) {
      out.moves.push_back({slot, static_cast<std::uint32_t>(expert), slots[slot], best_score});
      slots[slot] = expert;
      written_[slot] = 1;
      ++taken_[layout.worker_of(slot)];
    };
    write(best.slot, static_cast<std::int32_t>(best.expert));
    if (best.back_slot >= 0) write(static_cast<std::uint32_t>(best.back_slot), had);
    limit_ = split_.solve(p);
  }
  out.limit_after = limit_;
  return out;
}

std::vector<slot_move> repairer::restore_lost(split_problem p, std::span<std::int32_t> slots,
                                              std::span<const std::uint8_t> fixed) {
  const slot_layout& layout = *p.layout;
  std::vector<std::uint32_t> replicas(p.loads.size(), 0);
  for (std::uint32_t s = 0; s < slots.size(); ++s)
    if (slots[s] >= 0 && live(p, layout.worker_of(s)))
      ++replicas[static_cast<std::size_t>(slots[s])];
  p.slots = slots;
  split_.solve(p);
  std::vector<double> load(layout.workers(), 0);
  for (std::uint32_t s = 0; s < slots.size(); ++s)
    if (live(p, layout.worker_of(s))) load[layout.worker_of(s)] += split_.served(s);

  const auto hottest = most(p.loads.size(), p.loads.size(),
                            [&](std::uint32_t e) { return static_cast<double>(p.loads[e]); });
  std::vector<slot_move> moves;
  for (const std::uint32_t e : hottest) {
    if (replicas[e] > 0) continue;
    std::int64_t best = -1;
    const auto before = [&](std::uint32_t a, std::uint32_t b) {
      if ((slots[a] < 0) != (slots[b] < 0)) return slots[a] < 0;
      return load[layout.worker_of(a)] < load[layout.worker_of(b)];
    };
    for (std::uint32_t s = 0; s < slots.size(); ++s) {
      if (!live(p, layout.worker_of(s)) || (!fixed.empty() && fixed[s] != 0)) continue;
      if (slots[s] >= 0 && replicas[static_cast<std::size_t>(slots[s])] < 2) continue;
      if (best < 0 || before(s, static_cast<std::uint32_t>(best))) best = s;
    }
    if (best < 0) continue;
    const auto slot = static_cast<std::uint32_t>(best);
    if (slots[slot] >= 0) --replicas[static_cast<std::size_t>(slots[slot])];
    moves.push_back({slot, e, slots[slot], 0});
    slots[slot] = static_cast<std::int32_t>(e);
    replicas[e] = 1;
    load[layout.worker_of(slot)] += static_cast<double>(p.loads[e]);
  }
  return moves;
}

}  // namespace moetier::eplb
