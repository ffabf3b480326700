#include "workers/engine/waiting_calls.hpp"

#include <algorithm>

#include "schemas/base/assert.hpp"
#include "transport/exchange/limits.hpp"
#include "transport/time_needed.hpp"

namespace moetier::workers {
namespace {

// The limit of a wait is half of what is left of the deadline; calls are refused at 95 % of it,
// those of the lower classes at 92 %. Where another worker decides, at 80 % of all that is left:
// what it admitted is refused here only if it would surely end too late.
constexpr std::uint64_t k_refuse_percent = 95;
constexpr std::uint64_t k_shed_percent = 92;
constexpr std::uint64_t k_decided_percent = 160;

constexpr duration_ns wait_max(duration_ns left, deadline_class urgency, bool decided) noexcept {
  if (decided) return left / 200 * k_decided_percent;
  return left / 200 * (urgency == deadline_class::decode ? k_refuse_percent : k_shed_percent);
}

void add(std::atomic<std::uint64_t>& to, std::uint64_t n) noexcept {
  to.store(to.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);  // one writer
}

}  // namespace

waiting_calls::waiting_calls(std::uint32_t sources_max)
    : queue_(sources_max * transport::k_banks_max, sources_max),
      calls_(std::size_t{sources_max} * transport::k_banks_max),
      deadlines_(calls_.size()),
      flows_(sources_max),
      tenants_(sources_max) {}

void waiting_calls::attach(source_id source, std::string_view tenant, std::uint32_t weight,
                           deadline_class urgency) {
  MOETIER_ASSERT(source.value < flows_.size());
  detach(source);
  auto at = std::find_if(tenants_.begin(), tenants_.end(),
                         [&](const auto& t) { return t.sources > 0 && t.name == tenant; });
  if (at == tenants_.end()) {
    at = std::find_if(tenants_.begin(), tenants_.end(),
                      [](const auto& t) { return t.sources == 0; });
    MOETIER_ASSERT(at != tenants_.end());  // as many places as sources
    at->name = tenant;
  }
  ++at->sources;
  const auto index = static_cast<fair_queue::tenant>(at - tenants_.begin());
  queue_.set_weight(index, std::clamp(weight, 1u, k_fair_weight_max));
  flows_[source.value] = {.attached = true, .tenant = index, .urgency = urgency};
}

void waiting_calls::detach(source_id source) {
  if (source.value >= flows_.size() || !flows_[source.value].attached) return;
  flow& f = flows_[source.value];
  for (fair_queue::place p = 0; p < calls_.size(); ++p) {
    if (!queue_.waits(p) || calls_[p].source != source) continue;
    queue_.remove(p);
    count_rows(f.urgency, -std::int64_t{calls_[p].rows});
  }
  --tenants_[f.tenant].sources;
  f = {};
}

void waiting_calls::count_rows(deadline_class urgency, std::int64_t rows) noexcept {
  add(counters_.rows[index_of(urgency)], static_cast<std::uint64_t>(rows));
}

waiting_calls::verdict waiting_calls::refuse_late(deadline_class urgency,
                                                  duration_ns cost) noexcept {
  add(counters_.late, 1);
  add(counters_.missed[index_of(urgency)], 1);
  return {status::timeout, transport::detail_of({.ahead = 0, .call = cost})};
}

waiting_calls::verdict waiting_calls::admit(const transport::arrival& work, time_ns now,
                                            duration_ns unseen) {
  MOETIER_ASSERT(work.source.value < flows_.size());
  const flow& f = flows_[work.source.value];
  if (!f.attached) return {status::bad_state, 0};
  const duration_ns budget = work.budget_us * k_microsecond;
  const duration_ns left = budget - std::min(budget, unseen);
  const duration_ns cost = cost_.predict(work.rows);
  if (left == 0 || cost > left) {
    cost_.doubt(work.rows);
    return refuse_late(f.urgency, cost);
  }
  if (!queue_.empty()) {
    const duration_ns ahead = queue_.time_ahead(f.tenant, f.urgency, cost);
    const bool decided = (work.key.flags & transport::k_flag_decided) != 0;
    if (ahead > wait_max(left, f.urgency, decided) || ahead + cost > left) {
      add(counters_.overloaded, 1);
      return {status::overloaded, transport::detail_of({.ahead = ahead, .call = cost})};
    }
  }
  // Only where lost connections left calls here beside those of the banks.
  if (queue_.full()) {
    add(counters_.overloaded, 1);
    return {status::overloaded, transport::detail_of({.call = cost})};
  }
  const fair_queue::place at = queue_.push(f.tenant, f.urgency, cost);
  calls_[at] = work;
  deadlines_[at] = now + left;
  count_rows(f.urgency, work.rows);
  return {};
}

bool waiting_calls::give_up(transport::arrival_ticket ticket) {
  for (fair_queue::place p = 0; p < calls_.size(); ++p) {
    if (!queue_.waits(p) || calls_[p].ticket != ticket) continue;
    queue_.remove(p);
    count_rows(flows_[calls_[p].source.value].urgency, -std::int64_t{calls_[p].rows});
    add(counters_.given_up, 1);
    return true;
  }
  return false;
}

bool waiting_calls::holds_before(generation_number generation) const noexcept {
  for (fair_queue::place p = 0; p < calls_.size(); ++p) {
    if (queue_.waits(p) && calls_[p].key.generation < generation) return true;
  }
  return false;
}

const transport::arrival& waiting_calls::next(time_ns now, verdict& late) {
  const fair_queue::place at = queue_.pop();
  const transport::arrival& work = calls_[at];
  const flow& f = flows_[work.source.value];
  count_rows(f.urgency, -std::int64_t{work.rows});
  taken_ = {.urgency = f.urgency, .rows = work.rows, .deadline = deadlines_[at]};
  const duration_ns cost = cost_.predict(work.rows);
  late = now + cost > deadlines_[at] ? refuse_late(f.urgency, cost) : verdict{};
  return work;
}

void waiting_calls::served(duration_ns took, time_ns ended) {
  cost_.observe(taken_.rows, took);
  if (ended > taken_.deadline) add(counters_.missed[index_of(taken_.urgency)], 1);
}

queue_figures waiting_calls::figures() const noexcept {
  queue_figures f;
  for (std::size_t u = 0; u < k_deadline_classes; ++u) {
    f.rows_waiting[u] = counters_.rows[u].load(std::memory_order_relaxed);
    f.deadline_missed[u] = counters_.missed[u].load(std::memory_order_relaxed);
  }
  f.refused_overloaded = counters_.overloaded.load(std::memory_order_relaxed);
  f.refused_late = counters_.late.load(std::memory_order_relaxed);
  f.given_up = counters_.given_up.load(std::memory_order_relaxed);
  return f;
}

}  // namespace moetier::workers
