#include "transport/client/source/ticket.hpp"

#include <algorithm>
#include <array>
#include <bit>

#include "eplb/replica_choice.hpp"
#include "schemas/base/assert.hpp"
#include "transport/time_needed.hpp"

namespace moetier::client {

using transport::comm_status;
using transport::split_part;

status status_of(const call_failure& failure) noexcept {
  switch (failure.kind) {
    case failure_kind::none: return status::ok;
    case failure_kind::late: return status::timeout;
    case failure_kind::stale: return status::stale_generation;
    case failure_kind::corrupt: return status::corrupt;
    case failure_kind::refused: return failure.answered;
    case failure_kind::lost: return status::unavailable;
  }
  return status::internal;
}

ticket::ticket(const ticket_shape& shape, const row_arithmetic& arithmetic)
    : shape_(shape),
      arithmetic_(arithmetic),
      return_stride_(transport::padded_stride(std::size_t{shape.call.hidden_size} * sizeof(float))),
      rows_(shape.call, arithmetic),
      row_(shape.call.hidden_size) {
  const std::size_t tokens = shape.call.tokens_max;
  if (shape.sums_early) {
    early_.resize(tokens * shape.call.hidden_size);
    early_summed_.resize(transport::chunk_count(shape.call.tokens_max, shape.tokens_per_chunk_max));
  }
  flights_.resize(shape.banks);
  for (flight& f : flights_) f.by_span.resize(k_spans_max);
}

expected<void> ticket::take(const layer_call& call, const transport::routing_snapshot& snapshot,
                            std::size_t layer_index, const layer_router* router) {
  MOETIER_ASSERT(!outstanding_);
  auto taken = rows_.take(call, snapshot, layer_index, router);
  outstanding_ = taken.has_value();
  key_.layer = call.layer;  // can_avoid() is asked before choose()
  return taken;
}

expected<void> ticket::choose(transport::snapshot_ptr snapshot, const worker_table& workers,
                              const transport::exchange_key& key, source_id source,
                              std::uint32_t first_chunk, worker_mask avoid) {
  MOETIER_ASSERT(outstanding_);
  snapshot_ = std::move(snapshot);
  key_ = key;
  chunks_ = transport::chunk_count(tokens(), shape_.tokens_per_chunk_max);
  key_.chunk_count = static_cast<std::uint16_t>(chunks_);
  chunks_sent_ = 0;
  chunks_summed_ = 0;
  without_bank_ = 0;
  held_ = 0;
  failure_ = {};
  result_ = {};
  std::fill(early_summed_.begin(), early_summed_.end(), false);

  const auto& placement = snapshot_->placement;
  const int layer_index = placement.index_of(key.layer);
  MOETIER_ASSERT(layer_index >= 0);
  eplb::choice_key choice{
      .generation = key.generation, .layer = key.layer, .source = source, .step = key.step};
  for (std::uint32_t c = 0; c < chunks_; ++c) {
    choice.chunk = first_chunk + c;
    auto chosen = rows_.choose(*snapshot_, workers, choice, static_cast<std::size_t>(layer_index),
                               transport::split(tokens(), chunks_, c), avoid);
    if (!chosen) return chosen;
  }
  return {};
}

bool ticket::can_avoid(const transport::routing_snapshot& snapshot, const worker_table& workers,
                       worker_mask avoid) const noexcept {
  const int layer_index = snapshot.placement.index_of(key_.layer);
  return rows_.can_avoid(snapshot, workers, static_cast<std::size_t>(layer_index), avoid);
}

ticket::flight* ticket::free_flight() noexcept {
  for (flight& f : flights_) {
    if (!f.used) return &f;
  }
  return nullptr;
}

void ticket::count_rows(flight& f, const worker_table& workers) noexcept {
  f.workers = rows_.count(f.tokens, workers, traffic_);
  for_each_span(f.workers, [&](std::size_t s) {
    f.by_span[s] = {.rows = traffic_[s].rows, .rows_due = traffic_[s].rows_due, .payload = {}};
  });
}

bool ticket::open_all(flight& f, transport::SourceHalf& half, const worker_table& workers) {
  transport::exchange_key key = key_;
  key.chunk = static_cast<std::uint16_t>(f.chunk);
  const std::size_t decides = gate_.choose(f.workers);
  worker_mask opened = 0;
  comm_status trouble = comm_status::ok;
  for_each_span(f.workers, [&](std::size_t s) {
    if (trouble != comm_status::ok) return;
    exchange& e = f.by_span[s];
    key.flags = s == decides ? key_.flags : key_.flags | transport::k_flag_decided;
    trouble = half.open(workers.worker_of(s), key, e.handle);
    if (trouble == comm_status::ok) {
      e.state = leg::opened;
      opened |= worker_mask{1} << s;
    } else if (trouble == comm_status::no_credit) {
      without_bank_ |= worker_mask{1} << s;
    } else {
      fail_lost(workers.worker_of(s));
    }
  });
  if (trouble == comm_status::ok) return true;
  for_each_span(opened, [&](std::size_t s) {
    half.release(f.by_span[s].handle);
    f.by_span[s] = {};
  });
  return false;
}

void ticket::send(transport::SourceHalf& half, const worker_table& workers,
                  std::uint32_t budget_us) {
  without_bank_ = 0;
  while (!failure_ && !fully_sent()) {
    flight* f = free_flight();
    if (f == nullptr) return;
    f->chunk = chunks_sent_;
    f->tokens = transport::split(tokens(), chunks_, f->chunk);
    count_rows(*f, workers);
    if (!open_all(*f, half, workers)) return;

    std::array<std::span<std::byte>, k_spans_max> regions;
    for_each_span(f->workers, [&](std::size_t s) {
      regions[s] = half.send_region(f->by_span[s].handle, f->by_span[s].rows);
      if (regions[s].empty()) fail_lost(workers.worker_of(s));
    });
    f->used = true;
    f->awaited = f->workers;
    if (!failure_) rows_.pack(f->tokens, workers, traffic_, regions.data());
    for_each_span(f->workers, [&](std::size_t s) {
      exchange& e = f->by_span[s];
      if (failure_) return;
      if (half.dispatch(e.handle, e.rows, budget_us) == comm_status::ok) {
        e.state = leg::sent;
      } else {
        fail_lost(workers.worker_of(s));
      }
    });
    ++chunks_sent_;
  }
}

bool ticket::take_return(const transport::returned& report, transport::SourceHalf& half,
                         const worker_table& workers) {
  for (flight& f : flights_) {
    if (!f.used) continue;
    bool found = false;
    for_each_span(f.awaited, [&](std::size_t s) {
      exchange& e = f.by_span[s];
      if (found || e.handle != report.ticket || e.state != leg::sent) return;
      found = true;
      f.awaited &= ~(worker_mask{1} << s);
      const worker_id worker = workers.worker_of(s);
      call_failure failure{
          .worker = worker, .answered = report.worker_status, .held = report.detail};
      switch (report.result) {
        case comm_status::ok: break;
        case comm_status::stale:
        case comm_status::plan_mismatch: failure.kind = failure_kind::stale; break;
        case comm_status::corrupt: failure.kind = failure_kind::corrupt; break;
        case comm_status::peer_refused: failure.kind = failure_kind::refused; break;
        case comm_status::timeout: failure.kind = failure_kind::late; break;
        default: failure.kind = failure_kind::lost; break;
      }
      const bool answered =
          report.result == comm_status::ok || failure.kind == failure_kind::refused;
      if (answered && report.worker_status != status::ok) {
        failure.kind = failure_kind::refused;
        if (report.worker_status == status::stale_generation) failure.kind = failure_kind::stale;
        if (report.worker_status == status::corrupt) failure.kind = failure_kind::corrupt;
      }
      const bool whole =
          report.rows == e.rows_due && report.payload.size() == e.rows_due * return_stride_ &&
          reinterpret_cast<std::uintptr_t>(report.payload.data()) % alignof(float) == 0;
      if (!failure && !whole) failure.kind = failure_kind::corrupt;
      last_answer_ = {.worker = worker,
                      .chunk = static_cast<std::uint16_t>(f.chunk),
                      .bytes_due = e.rows_due * return_stride_,
                      .bytes_seen = report.payload.size(),
                      .outcome = status_of(failure)};
      if (failure.answered == status::overloaded) {
        const auto needed = transport::time_needed_in(failure.held);
        gate_.note(s, needed.ahead + needed.call);
      }
      if (failure) {
        half.release(e.handle);
        e.state = leg::none;
        if (!failure_) failure_ = failure;
        return;
      }
      held_ = report.held_ns;
      gate_.note(s, held_);
      e.payload = report.payload;
      e.state = leg::done;
    });
    if (found) return true;
  }
  return false;
}

void ticket::collect_into(const layer_result& result) {
  result_ = result;
  if (!shape_.sums_early) return;
  for (std::uint32_t c = 0; c < chunks_; ++c) {
    if (!early_summed_[c]) continue;
    const split_part part = transport::split(tokens(), chunks_, c);
    for (std::uint32_t t = part.first; t < part.first + part.size; ++t) {
      arithmetic_.narrow(static_cast<std::byte*>(result.output) + t * result.pitch, result.type,
                         early_.data() + std::size_t{t} * shape_.call.hidden_size,
                         shape_.call.hidden_size);
    }
  }
}

void ticket::settle(transport::SourceHalf& half, const worker_table& workers) {
  if (failure_) return;
  const bool collecting = result_.output != nullptr || tokens() == 0;
  if (!collecting && !shape_.sums_early) return;
  for (flight& f : flights_) {
    if (!f.used || f.awaited != 0) continue;
    sum(f, workers);
    for_each_span(f.workers, [&](std::size_t s) { half.release(f.by_span[s].handle); });
    f.used = false;
    ++chunks_summed_;
    if (!collecting) early_summed_[f.chunk] = true;
  }
}

void ticket::sum(const flight& f, const worker_table& workers) noexcept {
  const std::size_t width = shape_.call.hidden_size;
  const bool collecting = result_.output != nullptr;
  const bool direct = collecting && result_.type == dtype::f32;
  call_rows::returns from;
  for_each_span(f.workers, [&](std::size_t s) { from.payload[s] = f.by_span[s].payload.data(); });
  for (std::uint32_t t = f.tokens.first; t < f.tokens.first + f.tokens.size; ++t) {
    std::byte* place =
        collecting ? static_cast<std::byte*>(result_.output) + t * result_.pitch : nullptr;
    float* out = direct ? reinterpret_cast<float*>(place)
                        : (collecting ? row_.data() : early_.data() + t * width);
    rows_.sum(t, workers, from, out);
    if (collecting && !direct) arithmetic_.narrow(place, result_.type, out, width);
  }
}

worker_mask ticket::awaited() const noexcept {
  worker_mask mask = without_bank_;
  for (const flight& f : flights_) {
    if (f.used) mask |= f.awaited;
  }
  return mask;
}

bool ticket::uses(std::size_t span) const noexcept {
  return std::any_of(flights_.begin(), flights_.end(),
                     [&](const flight& f) { return f.used && (f.workers >> span & 1) != 0; });
}

void ticket::fail_late(const worker_table& workers) noexcept {
  const worker_mask mask = awaited();
  if (mask != 0) fail_late_of(static_cast<std::size_t>(std::countr_zero(mask)), workers);
}

void ticket::fail_late_of(std::size_t span, const worker_table& workers) noexcept {
  if (failure_) return;
  failure_ = {.kind = failure_kind::late, .worker = workers.worker_of(span)};
  for (const flight& f : flights_) {
    if (!f.used || (f.workers >> span & 1) == 0) continue;
    const exchange& e = f.by_span[span];
    failure_.bytes_due += e.rows_due * return_stride_;
    failure_.bytes_seen += e.payload.size();
  }
}

void ticket::fail_lost(worker_id worker) noexcept {
  if (!failure_) failure_ = {.kind = failure_kind::lost, .worker = worker};
}

void ticket::abandon(transport::SourceHalf& half) noexcept {
  for (flight& f : flights_) {
    if (!f.used) continue;
    for_each_span(f.workers, [&](std::size_t s) {
      exchange& e = f.by_span[s];
      if (e.state == leg::sent) static_cast<void>(half.expire(e.handle));
      if (e.state == leg::opened || e.state == leg::done) half.release(e.handle);
      e = {};
    });
    f.used = false;
  }
}

}  // namespace moetier::client
