#include "workers/engine/engine_meter.hpp"

#include <algorithm>

namespace moetier::workers {
namespace {

std::size_t place_of(status end) noexcept {
  const auto found = std::find(k_worker_ends.begin(), k_worker_ends.end(), end);
  const auto at = static_cast<std::size_t>(found - k_worker_ends.begin());
  return std::min(at, k_worker_ends.size() - 1);
}

}  // namespace

std::string_view work_stage_name(work_stage s) noexcept {
  switch (s) {
    case work_stage::receive: return "receive";
    case work_stage::wait: return "wait";
    case work_stage::group: return "group";
    case work_stage::fc1: return "fc1";
    case work_stage::fc2: return "fc2";
    case work_stage::compute: return "compute";
    case work_stage::give_back: return "return";
  }
  return "return";
}

void engine_meter::count(const transport::arrival& work, const served_exchange& served, status end,
                         time_ns began, time_ns ended) noexcept {
  count_end(end, work.rows);
  add(work_stage::receive, work.landed_at - work.admitted_at);
  add(work_stage::wait, began - work.landed_at);
  if (served.grouped_at == 0) return;
  add(work_stage::group, served.grouped_at - began);
  if (served.compute.last != served.grouped_at) {
    add(work_stage::fc1, served.compute.fc1_ns);
    add(work_stage::fc2, served.compute.fc2_ns);
  } else {
    add(work_stage::compute, served.computed_at - served.grouped_at);
  }
  add(work_stage::give_back, ended - served.computed_at);
  batch_rows_.add(work.rows);
  activated_experts_.add(served.experts);
  raise(padding_rows_, served.compute.padding_rows);
}

void engine_meter::count_end(status end, std::uint32_t rows) noexcept {
  raise(calls_[place_of(end)], 1);
  raise(rows_[place_of(end)], rows);
}

void engine_meter::count_turn(std::uint32_t sources, duration_ns idle_or_other) noexcept {
  if (sources > 0) batch_sessions_.add(sources);
  if (idle_or_other > k_engine_stall_min) raise(stalls_, 1);
}

engine_reading engine_meter::read() const {
  engine_reading r;
  for (std::size_t s = 0; s < k_work_stages; ++s) r.stages[s] = stages_[s].read();
  r.batch_rows = batch_rows_.read();
  r.batch_sessions = batch_sessions_.read();
  r.activated_experts = activated_experts_.read();
  for (std::size_t e = 0; e < k_worker_ends.size(); ++e) {
    r.calls[e] = calls_[e].load(std::memory_order_relaxed);
    r.rows[e] = rows_[e].load(std::memory_order_relaxed);
  }
  r.padding_rows = padding_rows_.load(std::memory_order_relaxed);
  r.stalls = stalls_.load(std::memory_order_relaxed);
  return r;
}

}  // namespace moetier::workers
