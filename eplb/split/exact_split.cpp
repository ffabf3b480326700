#include "eplb/split/exact_split.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "eplb/split/share_rounding.hpp"
#include "schemas/base/assert.hpp"
#include "schemas/base/limits.hpp"

namespace moetier::eplb {
namespace {

__extension__ using wide = __int128;

constexpr unsigned k_sum_bits = 56;  // of the shifted loads' sum
constexpr std::uint32_t k_far = 0xffffffffU;
constexpr std::uint32_t k_speed_one = 65536;

std::int64_t divided_up(wide value, std::int64_t by) noexcept {
  return static_cast<std::int64_t>((value + by - 1) / by);
}

}  // namespace

void exact_split::reserve(std::uint32_t experts, std::uint32_t slots, std::uint32_t workers) {
  for (auto* v : {&base_, &used_}) v->reserve(workers);
  for (auto* v : {&shifted_, &left_}) v->reserve(experts);
  for (auto* v : {&start_, &next_, &flowing_, &arc_start_, &level_of_expert_, &turn_of_expert_})
    v->reserve(experts + 1);
  for (auto* v : {&speed_, &worker_arc_, &level_of_worker_, &turn_of_worker_})
    v->reserve(workers + 1);
  for (auto* v : {&hosts_, &at_worker_, &own_units_}) v->reserve(slots);
  for (auto* v : {&amounts_, &own_amounts_}) v->reserve(slots);
  for (auto* v : {&live_, &in_cut_}) v->reserve(workers);
  queue_.reserve(std::size_t{experts} + workers);
  arcs_.reserve(slots);
}

void exact_split::build(const split_problem& p) {
  const auto experts = static_cast<std::uint32_t>(p.loads.size());
  const slot_layout& layout = *p.layout;
  const std::uint32_t workers = layout.workers();
  MOETIER_ASSERT(p.slots.size() == layout.slots());
  MOETIER_ASSERT(p.live.empty() || p.live.size() == workers);
  MOETIER_ASSERT(p.speeds.empty() || p.speeds.size() == workers);
  live_.assign(workers, 1);
  std::copy(p.live.begin(), p.live.end(), live_.begin());
  speed_.assign(workers, k_speed_one);
  std::copy(p.speeds.begin(), p.speeds.end(), speed_.begin());

  // Live slots by expert: count, prefix sums, fill.
  start_.assign(experts + 1, 0);
  for (std::uint32_t g = 0; g < workers; ++g) {
    if (live_[g] == 0) continue;
    for (std::uint32_t s = layout.first(g); s < layout.first(g) + layout.count(g); ++s)
      if (p.slots[s] >= 0) ++start_[static_cast<std::size_t>(p.slots[s]) + 1];
  }
  for (std::uint32_t e = 0; e < experts; ++e) start_[e + 1] += start_[e];
  hosts_.resize(start_[experts]);
  next_.assign(start_.begin(), start_.end() - 1);
  for (std::uint32_t g = 0; g < workers; ++g) {
    if (live_[g] == 0) continue;
    for (std::uint32_t s = layout.first(g); s < layout.first(g) + layout.count(g); ++s)
      if (p.slots[s] >= 0) hosts_[next_[static_cast<std::size_t>(p.slots[s])]++] = s;
  }

  double sum = 0;
  experts_lost_ = 0;
  for (std::uint32_t e = 0; e < experts; ++e) {
    if (start_[e + 1] == start_[e]) {
      ++experts_lost_;
    } else {
      sum += static_cast<double>(p.loads[e]);
    }
  }
  int exponent = 0;  // sum < 2^exponent
  std::frexp(sum, &exponent);
  const int shift = static_cast<int>(k_sum_bits) - exponent;
  scale_ = std::ldexp(1.0, shift);

  base_.assign(workers, 0);
  used_.assign(workers, 0);
  shifted_.assign(experts, 0);
  flowing_.clear();
  arcs_.clear();
  arc_start_.clear();
  left_.clear();
  worker_arc_.assign(workers + 1, 0);
  total_ = 0;
  for (std::uint32_t e = 0; e < experts; ++e) {
    const std::uint32_t count = start_[e + 1] - start_[e];
    if (count == 0 || p.loads[e] == 0) continue;
    const std::uint64_t w = p.loads[e];
    const std::uint64_t fixed =
        shift >= 0 ? w << shift : std::max<std::uint64_t>(w >> std::min(-shift, 63), 1);
    shifted_[e] = static_cast<std::int64_t>(fixed);
    total_ += shifted_[e];
    if (count == 1) {
      base_[layout.worker_of(hosts_[start_[e]])] += shifted_[e];
      continue;
    }
    arc_start_.push_back(static_cast<std::uint32_t>(arcs_.size()));
    for (std::uint32_t i = start_[e]; i < start_[e + 1]; ++i) {
      const std::uint32_t g = layout.worker_of(hosts_[i]);
      arcs_.push_back({static_cast<std::uint32_t>(flowing_.size()), g, hosts_[i], 0});
      ++worker_arc_[g + 1];
    }
    flowing_.push_back(e);
    left_.push_back(shifted_[e]);
  }
  arc_start_.push_back(static_cast<std::uint32_t>(arcs_.size()));
  for (std::uint32_t g = 0; g < workers; ++g) worker_arc_[g + 1] += worker_arc_[g];
  at_worker_.resize(arcs_.size());
  turn_of_worker_.assign(worker_arc_.begin(), worker_arc_.end() - 1);
  for (std::uint32_t a = 0; a < arcs_.size(); ++a)
    at_worker_[turn_of_worker_[arcs_[a].worker]++] = a;
  in_cut_.assign(workers, 0);
}

std::int64_t exact_split::room(std::uint32_t g) const noexcept {
  const auto full = static_cast<std::int64_t>(wide{limit_} * speed_[g] / k_speed_one);
  return full - base_[g] - used_[g];
}

// A start for the flow: every expert to its hosts in turn, as far as there is room.
void exact_split::fill_greedily() {
  for (arc& a : arcs_) {
    const std::int64_t amount = std::min(left_[a.expert], room(a.worker));
    if (amount <= 0) continue;
    a.flow += amount;
    left_[a.expert] -= amount;
    used_[a.worker] += amount;
  }
}

// Distances from experts with something left, over workers that are full, to a worker with room.
bool exact_split::levels() {
  level_of_expert_.assign(flowing_.size(), k_far);
  level_of_worker_.assign(base_.size(), k_far);
  queue_.clear();
  const auto workers = static_cast<std::uint32_t>(base_.size());
  for (std::uint32_t i = 0; i < flowing_.size(); ++i) {
    if (left_[i] == 0) continue;
    level_of_expert_[i] = 0;
    queue_.push_back(workers + i);
  }
  bool reached = false;
  for (std::size_t head = 0; head < queue_.size(); ++head) {
    const std::uint32_t node = queue_[head];
    if (node >= workers) {
      const std::uint32_t i = node - workers;
      for (std::uint32_t a = arc_start_[i]; a < arc_start_[i + 1]; ++a) {
        const std::uint32_t g = arcs_[a].worker;
        if (level_of_worker_[g] != k_far) continue;
        level_of_worker_[g] = level_of_expert_[i] + 1;
        reached |= room(g) > 0;
        queue_.push_back(g);
      }
      continue;
    }
    for (std::uint32_t n = worker_arc_[node]; n < worker_arc_[node + 1]; ++n) {
      const arc& a = arcs_[at_worker_[n]];
      if (a.flow == 0 || level_of_expert_[a.expert] != k_far) continue;
      level_of_expert_[a.expert] = level_of_worker_[node] + 1;
      queue_.push_back(workers + a.expert);
    }
  }
  return reached;
}

// Sends up to `wanted` of an expert along shortest paths; what was sent.
std::int64_t exact_split::push(std::uint32_t expert, std::int64_t wanted) {
  std::int64_t sent = 0;
  for (std::uint32_t& a = turn_of_expert_[expert]; a < arc_start_[expert + 1]; ++a) {
    const std::uint32_t g = arcs_[a].worker;
    if (level_of_worker_[g] != level_of_expert_[expert] + 1) continue;
    const std::int64_t direct = std::min(wanted - sent, room(g));
    if (direct > 0) {
      arcs_[a].flow += direct;
      used_[g] += direct;
      sent += direct;
    }
    // The worker is full: another expert of it may go elsewhere.
    for (std::uint32_t& n = turn_of_worker_[g]; sent < wanted && n < worker_arc_[g + 1]; ++n) {
      arc& back = arcs_[at_worker_[n]];
      if (back.flow == 0 || level_of_expert_[back.expert] != level_of_worker_[g] + 1) continue;
      const std::int64_t moved = push(back.expert, std::min(wanted - sent, back.flow));
      back.flow -= moved;
      arcs_[a].flow += moved;
      sent += moved;
      if (sent == wanted) break;
    }
    if (sent == wanted) return sent;
  }
  return sent;
}

bool exact_split::augment_all() {
  while (levels()) {
    turn_of_expert_.assign(arc_start_.begin(), arc_start_.end() - 1);
    turn_of_worker_.assign(worker_arc_.begin(), worker_arc_.end() - 1);
    for (std::uint32_t i = 0; i < flowing_.size(); ++i) {
      if (left_[i] > 0 && level_of_expert_[i] == 0) left_[i] -= push(i, left_[i]);
    }
  }
  return std::all_of(left_.begin(), left_.end(), [](std::int64_t l) { return l == 0; });
}

// From the cut that the last levels() left: everything reached cannot be served below this limit.
void exact_split::raise_limit() {
  wide cut_load = 0;
  std::int64_t cut_speed = 0;
  for (std::uint32_t i = 0; i < flowing_.size(); ++i)
    if (level_of_expert_[i] != k_far) cut_load += shifted_[flowing_[i]];
  for (std::uint32_t g = 0; g < base_.size(); ++g) {
    in_cut_[g] = level_of_worker_[g] != k_far ? 1 : 0;
    if (in_cut_[g] == 0) continue;
    cut_load += base_[g];
    cut_speed += speed_[g];
  }
  MOETIER_ASSERT(cut_speed > 0);
  // At least one up: limits times speeds are rounded down.
  limit_ = std::max(limit_ + 1, divided_up(cut_load * k_speed_one, cut_speed));
}

double exact_split::solve(const split_problem& p) {
  build(p);
  std::int64_t speeds = 0;
  std::int64_t most = 0;
  std::uint32_t fullest = 0;
  for (std::uint32_t g = 0; g < base_.size(); ++g) {
    if (live_[g] == 0) continue;
    MOETIER_ASSERT(speed_[g] > 0);
    speeds += speed_[g];
    const std::int64_t alone = divided_up(wide{base_[g]} * k_speed_one, speed_[g]);
    if (alone > most) {
      most = alone;
      fullest = g;
    }
  }
  limit_ = most;
  if (speeds > 0) limit_ = std::max(most, divided_up(wide{total_} * k_speed_one, speeds));
  fill_greedily();
  bool raised = false;
  while (!augment_all()) {
    raise_limit();
    raised = true;
  }
  if (!raised) in_cut_[fullest] = 1;
  note_amounts(p);
  return limit();
}

bool exact_split::fits(const split_problem& p, double limit) {
  build(p);
  limit_ = static_cast<std::int64_t>(limit * scale_);
  for (std::uint32_t g = 0; g < base_.size(); ++g)
    if (live_[g] != 0 && room(g) < 0) return false;
  fill_greedily();
  return augment_all();
}

void exact_split::note_amounts(const split_problem& p) {
  amounts_.assign(p.slots.size(), 0);
  for (const arc& a : arcs_) amounts_[a.slot] = static_cast<std::uint64_t>(a.flow);
  for (std::uint32_t e = 0; e < p.loads.size(); ++e) {
    if (start_[e + 1] - start_[e] == 1)
      amounts_[hosts_[start_[e]]] = static_cast<std::uint64_t>(shifted_[e]);
  }
}

void exact_split::shares(const split_problem& p, std::span<std::uint32_t> units) {
  MOETIER_ASSERT(units.size() == p.slots.size() && amounts_.size() == units.size());
  std::fill(units.begin(), units.end(), 0U);
  for (std::uint32_t e = 0; e < p.loads.size(); ++e) {
    const std::uint32_t count = start_[e + 1] - start_[e];
    if (count == 1) units[hosts_[start_[e]]] = k_shares_unit;
    if (count < 2) continue;
    own_amounts_.clear();
    for (std::uint32_t i = start_[e]; i < start_[e + 1]; ++i)
      own_amounts_.push_back(amounts_[hosts_[i]]);
    own_units_.resize(count);
    round_shares(own_amounts_, own_units_);
    for (std::uint32_t i = 0; i < count; ++i) units[hosts_[start_[e] + i]] = own_units_[i];
  }
}

}  // namespace moetier::eplb
