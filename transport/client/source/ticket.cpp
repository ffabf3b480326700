#include "transport/client/source/ticket.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "eplb/replica_choice.hpp"
#include "kernels/routing/route.hpp"
#include "schemas/base/assert.hpp"

namespace moetier::client {

using transport::comm_status;
using transport::split_part;

namespace {

// Calls `visit(span)` for each worker of a mask, in ascending order.
template <class Visit>
void for_each_span(worker_mask mask, Visit visit) {
  for (; mask != 0; mask &= mask - 1) visit(static_cast<std::size_t>(std::countr_zero(mask)));
}

}  // namespace

ticket::ticket(const ticket_shape& shape, const row_arithmetic& arithmetic)
    : shape_(shape),
      arithmetic_(arithmetic),
      hidden_stride_(transport::padded_stride(std::size_t{shape.hidden_size} * sizeof(float))),
      return_stride_(hidden_stride_) {
  const std::size_t tokens = shape.tokens_max;
  const std::size_t picks_max = tokens * shape.top_k;
  // Padding of the stride is zero from here on: rows are copied with it.
  hidden_.resize(tokens * hidden_stride_ / sizeof(float));
  ids_.resize(picks_max);
  weights_.resize(picks_max);
  dense_.resize(picks_max);
  to_.resize(tokens);
  counts_.resize(2 * std::size_t{shape.experts});
  row_.resize(shape.hidden_size);
  if (shape.sums_early) {
    early_.resize(tokens * shape.hidden_size);
    early_summed_.resize(transport::chunk_count(tokens, shape.rows_per_chunk_max));
  }
  flights_.resize(shape.banks);
  for (flight& f : flights_) f.by_span.resize(k_spans_max);
}

expected<void> ticket::take(const layer_call& call, const transport::routing_snapshot& snapshot) {
  MOETIER_ASSERT(!outstanding_);
  MOETIER_ASSERT(call.tokens <= shape_.tokens_max);
  tokens_ = call.tokens;
  const std::span<std::int32_t> ids(ids_.data(), picks());
  const std::span<float> weights(weights_.data(), picks());
  if (call.logits != nullptr) {
    kernels::routing_params routing = snapshot.routing;
    routing.top_k = shape_.top_k;
    if (auto ok = kernels::route(routing, {},
                                 {.logits = call.logits,
                                  .type = call.logits_type,
                                  .pitch_bytes = call.logits_pitch,
                                  .tokens = tokens_},
                                 ids, weights);
        !ok) {
      return ok;
    }
  } else {
    std::copy(call.ids.begin(), call.ids.end(), ids.begin());
    std::copy(call.weights.begin(), call.weights.end(), weights.begin());
    if (auto ok = kernels::check_given(shape_.experts, shape_.top_k, tokens_, ids, weights); !ok) {
      return ok;
    }
  }
  const auto* in = static_cast<const std::byte*>(call.hidden);
  float* out = hidden_.data();
  for (std::uint32_t t = 0; t < tokens_; ++t) {
    arithmetic_.widen(out, in, call.hidden_type, shape_.hidden_size);
    in += call.hidden_pitch;
    out += hidden_stride_ / sizeof(float);
  }
  outstanding_ = true;
  return {};
}

expected<void> ticket::choose(transport::snapshot_ptr snapshot, const worker_table& workers,
                              const transport::exchange_key& key, source_id source,
                              std::uint32_t first_chunk) {
  MOETIER_ASSERT(outstanding_);
  snapshot_ = std::move(snapshot);
  key_ = key;
  chunks_ = transport::chunk_count(tokens_, shape_.rows_per_chunk_max);
  key_.chunk_count = static_cast<std::uint16_t>(chunks_);
  chunks_sent_ = 0;
  chunks_summed_ = 0;
  without_bank_ = 0;
  failure_ = {};
  result_ = {};
  std::fill(early_summed_.begin(), early_summed_.end(), false);

  const auto& placement = snapshot_->placement;
  const int layer_index = placement.index_of(key.layer);
  MOETIER_ASSERT(layer_index >= 0);
  eplb::choice_key choice{
      .generation = key.generation, .layer = key.layer, .source = source, .step = key.step};
  const std::size_t k = shape_.top_k;
  for (std::uint32_t c = 0; c < chunks_; ++c) {
    const split_part part = transport::split(tokens_, chunks_, c);
    choice.chunk = first_chunk + c;
    const std::span<const std::int32_t> ids(ids_.data() + part.first * k, part.size * k);
    const std::span<std::int32_t> dense(dense_.data() + part.first * k, part.size * k);
    const std::int32_t missing =
        eplb::choose_stratified(placement, snapshot_->shares, static_cast<std::size_t>(layer_index),
                                choice, ids, dense, counts_);
    if (missing >= 0) return fail(reason::no_replica, key.layer.value, missing);
  }
  for (std::uint32_t t = 0; t < tokens_; ++t) {
    worker_mask mask = 0;
    for (std::size_t j = 0; j < k; ++j) {
      const std::int32_t dense = dense_[t * k + j];
      if (dense >= 0) mask |= worker_mask{1} << workers.span_of(dense);
    }
    to_[t] = mask;
  }
  return {};
}

ticket::flight* ticket::free_flight() noexcept {
  for (flight& f : flights_) {
    if (!f.used) return &f;
  }
  return nullptr;
}

void ticket::count_rows(flight& f, const worker_table& workers) const noexcept {
  f.workers = 0;
  for (std::uint32_t t = f.tokens.first; t < f.tokens.first + f.tokens.size; ++t) {
    f.workers |= to_[t];
  }
  for_each_span(f.workers, [&](std::size_t s) { f.by_span[s] = {}; });
  const bool exact = shape_.mode == kernels::return_mode::exact;
  for (std::uint32_t t = f.tokens.first; t < f.tokens.first + f.tokens.size; ++t) {
    for_each_span(to_[t], [&](std::size_t s) {
      ++f.by_span[s].rows;
      if (!exact) ++f.by_span[s].rows_due;
    });
    if (!exact) continue;
    for (std::size_t j = 0; j < shape_.top_k; ++j) {
      const std::int32_t dense = dense_[t * shape_.top_k + j];
      if (dense >= 0) ++f.by_span[workers.span_of(dense)].rows_due;
    }
  }
}

bool ticket::open_all(flight& f, transport::SourceHalf& half, const worker_table& workers) {
  transport::exchange_key key = key_;
  key.chunk = static_cast<std::uint16_t>(f.chunk);
  worker_mask opened = 0;
  comm_status trouble = comm_status::ok;
  for_each_span(f.workers, [&](std::size_t s) {
    if (trouble != comm_status::ok) return;
    exchange& e = f.by_span[s];
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

void ticket::pack(const flight& f, const worker_table& workers,
                  const std::span<std::byte>* regions) const noexcept {
  const std::size_t k = shape_.top_k;
  const std::size_t record_stride = transport::record_stride(shape_.top_k);
  const std::size_t record_used = sizeof(std::uint32_t) * (1 + 2 * k);
  std::array<std::uint32_t, k_spans_max> cursor{};
  for (std::uint32_t t = f.tokens.first; t < f.tokens.first + f.tokens.size; ++t) {
    const float* row = hidden_.data() + t * (hidden_stride_ / sizeof(float));
    for_each_span(to_[t], [&](std::size_t s) {
      const std::size_t at = cursor[s]++;
      std::byte* region = regions[s].data();
      std::memcpy(region + at * hidden_stride_, row, hidden_stride_);

      std::byte* record = region + f.by_span[s].rows * hidden_stride_ + at * record_stride;
      std::memcpy(record, &t, sizeof t);
      std::byte* slots = record + sizeof t;
      for (std::size_t j = 0; j < k; ++j) {
        const std::int32_t dense = dense_[t * k + j];
        const bool mine = dense >= 0 && workers.span_of(dense) == s;
        const std::int32_t slot = mine ? workers.slot_of(dense) : k_no_slot;
        std::memcpy(slots + j * sizeof slot, &slot, sizeof slot);
      }
      std::memcpy(slots + k * sizeof(std::int32_t), weights_.data() + t * k, k * sizeof(float));
      std::memset(record + record_used, 0, record_stride - record_used);
    });
  }
}

void ticket::send(transport::SourceHalf& half, const worker_table& workers,
                  std::uint32_t budget_us) {
  without_bank_ = 0;
  while (!failure_ && !fully_sent()) {
    flight* f = free_flight();
    if (f == nullptr) return;
    f->chunk = chunks_sent_;
    f->tokens = transport::split(tokens_, chunks_, f->chunk);
    count_rows(*f, workers);
    if (!open_all(*f, half, workers)) return;

    std::array<std::span<std::byte>, k_spans_max> regions;
    for_each_span(f->workers, [&](std::size_t s) {
      regions[s] = half.send_region(f->by_span[s].handle, f->by_span[s].rows);
      if (regions[s].empty()) fail_lost(workers.worker_of(s));
    });
    f->used = true;
    f->awaited = f->workers;
    if (!failure_) pack(*f, workers, regions.data());
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
      if (failure) {
        half.release(e.handle);
        e.state = leg::none;
        if (!failure_) failure_ = failure;
        return;
      }
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
    const split_part part = transport::split(tokens_, chunks_, c);
    for (std::uint32_t t = part.first; t < part.first + part.size; ++t) {
      arithmetic_.narrow(static_cast<std::byte*>(result.output) + t * result.pitch, result.type,
                         early_.data() + std::size_t{t} * shape_.hidden_size, shape_.hidden_size);
    }
  }
}

void ticket::settle(transport::SourceHalf& half, const worker_table& workers) {
  if (failure_) return;
  const bool collecting = result_.output != nullptr || tokens_ == 0;
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

const float* ticket::returned_row(const exchange& e, std::uint32_t row) const noexcept {
  return reinterpret_cast<const float*>(e.payload.data() + row * return_stride_);
}

void ticket::sum(const flight& f, const worker_table& workers) noexcept {
  const std::size_t width = shape_.hidden_size;
  const bool collecting = result_.output != nullptr;
  const bool direct = collecting && result_.type == dtype::f32;
  std::array<std::uint32_t, k_spans_max> cursor{};
  for (std::uint32_t t = f.tokens.first; t < f.tokens.first + f.tokens.size; ++t) {
    std::byte* place =
        collecting ? static_cast<std::byte*>(result_.output) + t * result_.pitch : nullptr;
    float* out = direct ? reinterpret_cast<float*>(place)
                        : (collecting ? row_.data() : early_.data() + t * width);
    if (to_[t] == 0) {
      std::fill_n(out, width, 0.0F);
    } else if (shape_.mode == kernels::return_mode::exact) {
      sum_exact(f, workers, t, cursor.data(), out);
    } else {
      sum_partials(f, t, cursor.data(), out);
    }
    if (collecting && !direct) arithmetic_.narrow(place, result_.type, out, width);
  }
}

void ticket::sum_partials(const flight& f, std::uint32_t token, std::uint32_t* cursor,
                          float* out) noexcept {
  bool first = true;
  for_each_span(to_[token], [&](std::size_t s) {
    const float* row = returned_row(f.by_span[s], cursor[s]++);
    (first ? arithmetic_.first : arithmetic_.add)(out, row, shape_.hidden_size);
    first = false;
  });
}

void ticket::sum_exact(const flight& f, const worker_table& workers, std::uint32_t token,
                       std::uint32_t* cursor, float* out) noexcept {
  bool first = true;
  for (std::size_t j = 0; j < shape_.top_k; ++j) {
    const std::size_t pick = token * std::size_t{shape_.top_k} + j;
    if (dense_[pick] < 0) continue;
    const std::uint8_t s = workers.span_of(dense_[pick]);
    const float* row = returned_row(f.by_span[s], cursor[s]++);
    (first ? arithmetic_.first_weighted : arithmetic_.add_weighted)(out, weights_[pick], row,
                                                                    shape_.hidden_size);
    first = false;
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
