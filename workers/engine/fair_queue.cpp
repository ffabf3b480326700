#include "workers/engine/fair_queue.hpp"

#include <algorithm>

#include "schemas/base/assert.hpp"

namespace moetier::workers {

fair_queue::fair_queue(std::uint32_t places, std::uint32_t tenants)
    : calls_(places), lines_(std::size_t{tenants} * k_deadline_classes), weights_(tenants, 1) {
  MOETIER_ASSERT(places > 0 && tenants > 0);
  for (place p = places; p-- > 0;) give_free(p);
  for (level& l : levels_) l.active.resize(tenants);
}

void fair_queue::set_weight(tenant who, std::uint32_t weight) {
  MOETIER_ASSERT(weight >= 1 && weight <= k_fair_weight_max);
  weights_[who] = weight;
}

void fair_queue::give_free(place which) noexcept {
  calls_[which].waiting = false;
  calls_[which].next = free_;
  free_ = which;
}

fair_queue::place fair_queue::push(tenant who, deadline_class urgency, duration_ns cost) {
  MOETIER_ASSERT(!full() && who < weights_.size());
  const std::size_t u = index_of(urgency);
  const place at = free_;
  free_ = calls_[at].next;
  cost = std::max<duration_ns>(cost, 1);
  calls_[at] = {.waiting = true,
                .next = k_none,
                .line = static_cast<std::uint32_t>(u * weights_.size() + who),
                .cost = cost};
  line& l = line_of(who, u);
  level& v = levels_[u];
  if (l.first == k_none) {
    l.first = at;
    v.active[v.count++] = who;
  } else {
    calls_[l.last].next = at;
  }
  l.last = at;
  l.waiting += cost;
  v.waiting += cost;
  ++size_;
  return at;
}

// A tenant that has nothing left saves nothing up; who comes after it moves up one turn.
void fair_queue::leave(std::size_t urgency, std::size_t turn) noexcept {
  level& v = levels_[urgency];
  line_of(v.active[turn], urgency).deficit = 0;
  std::move(v.active.begin() + static_cast<std::ptrdiff_t>(turn) + 1,
            v.active.begin() + static_cast<std::ptrdiff_t>(v.count),
            v.active.begin() + static_cast<std::ptrdiff_t>(turn));
  --v.count;
  if (v.turn > turn) --v.turn;
  if (v.turn >= v.count) v.turn = 0;
}

// How many rounds from now its first call is paid for.
std::uint64_t fair_queue::rounds_until_due(tenant who, std::size_t urgency) const noexcept {
  const line& l = line_of(who, urgency);
  const duration_ns cost = calls_[l.first].cost;
  if (l.deficit >= cost) return 0;
  const duration_ns round = k_fair_round * weights_[who];
  return (cost - l.deficit + round - 1) / round;
}

// Who is due first, asked in the order of turns.
std::size_t fair_queue::choose_turn(std::size_t urgency) const noexcept {
  const level& v = levels_[urgency];
  std::size_t best = v.turn;
  std::uint64_t least = rounds_until_due(v.active[best], urgency);
  for (std::size_t i = 1; i < v.count && least > 0; ++i) {
    const std::size_t at = (v.turn + i) % v.count;
    const std::uint64_t rounds = rounds_until_due(v.active[at], urgency);
    if (rounds < least) {
      least = rounds;
      best = at;
    }
  }
  return best;
}

fair_queue::place fair_queue::take(std::size_t urgency) {
  level& v = levels_[urgency];
  const std::size_t turn = v.count == 1 ? 0 : choose_turn(urgency);
  const tenant who = v.active[turn];
  line& l = line_of(who, urgency);
  const duration_ns cost = calls_[l.first].cost;
  if (v.count == 1) {
    l.deficit = cost;  // nobody to share with
  } else if (const std::uint64_t rounds = rounds_until_due(who, urgency); rounds > 0) {
    // Everybody's rounds go by at once instead of one after the other.
    for (std::size_t i = 0; i < v.count; ++i) {
      line_of(v.active[i], urgency).deficit += rounds * k_fair_round * weights_[v.active[i]];
    }
  }
  l.deficit -= cost;
  l.waiting -= cost;
  v.waiting -= cost;
  const place at = l.first;
  l.first = calls_[at].next;
  --size_;
  give_free(at);
  if (l.first == k_none) {
    l.last = k_none;
    v.turn = turn;
    leave(urgency, turn);
  } else {
    // It goes on while what it saved up lasts.
    v.turn = rounds_until_due(who, urgency) == 0 ? turn : (turn + 1) % v.count;
  }
  return at;
}

// The most urgent class with calls, unless those below have saved up enough for theirs.
std::size_t fair_queue::choose_class() noexcept {
  std::array<bool, k_deadline_classes> lower_waits{};  // below the class of this index
  for (std::size_t u = k_deadline_classes - 1; u-- > 0;) {
    lower_waits[u] = lower_waits[u + 1] || levels_[u + 1].count > 0;
  }
  for (std::size_t u = 0;; ++u) {
    level& v = levels_[u];
    if (v.count == 0) continue;  // size() > 0: there is one
    if (!lower_waits[u]) {
      v.kept_for_lower = 0;
      return u;
    }
    std::size_t next = u + 1;
    while (levels_[next].count == 0) ++next;
    const duration_ns lower_cost =
        calls_[line_of(levels_[next].active[choose_turn(next)], next).first].cost;
    if (v.kept_for_lower < lower_cost) {
      const duration_ns cost = calls_[line_of(v.active[choose_turn(u)], u).first].cost;
      v.kept_for_lower += cost * k_lower_share_percent / (100 - k_lower_share_percent);
      return u;
    }
    v.kept_for_lower -= lower_cost;
  }
}

fair_queue::place fair_queue::pop() {
  MOETIER_ASSERT(!empty());
  return take(choose_class());
}

void fair_queue::remove(place which) {
  if (!calls_[which].waiting) return;
  const std::size_t u = calls_[which].line / weights_.size();
  const auto who = static_cast<tenant>(calls_[which].line % weights_.size());
  line& l = line_of(who, u);
  level& v = levels_[u];
  l.waiting -= calls_[which].cost;
  v.waiting -= calls_[which].cost;
  if (l.first == which) {
    l.first = calls_[which].next;
    if (l.first == k_none) l.last = k_none;
  } else {
    place before = l.first;
    while (calls_[before].next != which) before = calls_[before].next;
    calls_[before].next = calls_[which].next;
    if (l.last == which) l.last = before;
  }
  if (l.first == k_none) {
    const auto at = std::find(v.active.begin(), v.active.end(), who);
    leave(u, static_cast<std::size_t>(at - v.active.begin()));
  }
  --size_;
  give_free(which);
}

duration_ns fair_queue::time_ahead(tenant who, deadline_class urgency,
                                   duration_ns cost) const noexcept {
  const std::size_t u = index_of(urgency);
  duration_ns ahead = 0;
  for (std::size_t higher = 0; higher < u; ++higher) ahead += levels_[higher].waiting;
  const duration_ns own = line_of(who, u).waiting;
  ahead += own;
  const level& v = levels_[u];
  for (std::size_t i = 0; i < v.count; ++i) {
    const tenant other = v.active[i];
    if (other == who) continue;
    // While this tenant's time goes by, the other's does by its weight, and one call may be larger
    // than its due.
    const line& l = line_of(other, u);
    const duration_ns due = (own + cost) * weights_[other] / weights_[who];
    ahead += std::min(l.waiting, due + calls_[l.first].cost);
  }
  return ahead;
}

}  // namespace moetier::workers
