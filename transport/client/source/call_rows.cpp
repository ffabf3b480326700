#include "transport/client/source/call_rows.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "kernels/math/score_math.hpp"
#include "kernels/routing/route.hpp"
#include "kernels/routing/router_logits.hpp"
#include "schemas/base/assert.hpp"

namespace moetier::client {
namespace {

constexpr std::uint8_t k_no_span = 0xff;

// The n-th worker of a mask. Requires: n < popcount(mask).
std::uint8_t nth_span(worker_mask mask, unsigned n) noexcept {
  for (; n > 0; --n) mask &= mask - 1;
  return static_cast<std::uint8_t>(std::countr_zero(mask));
}

worker_mask live_spans(const transport::routing_snapshot& snapshot) noexcept {
  worker_mask mask = 0;
  for (std::size_t s = 0; s < snapshot.workers.size(); ++s) {
    if (snapshot.workers[s].live) mask |= worker_mask{1} << s;
  }
  return mask;
}

// Visits the live replicas of an expert that lie outside of `avoid`.
template <class Visit>
void for_each_other(const transport::routing_snapshot& snapshot, const worker_table& workers,
                    std::size_t layer_index, std::uint32_t expert, worker_mask avoid, Visit visit) {
  const auto units = snapshot.shares.units(layer_index);
  for (const std::uint32_t dense : snapshot.placement.replicas(layer_index, expert)) {
    if (units[dense] == 0) continue;
    if ((avoid >> workers.span_of(static_cast<std::int32_t>(dense)) & 1) == 0) visit(dense);
  }
}

}  // namespace

call_rows::call_rows(const call_shape& shape, const row_arithmetic& arithmetic)
    : shape_(shape),
      arithmetic_(arithmetic),
      stride_(transport::padded_stride(std::size_t{shape.hidden_size} * sizeof(float))) {
  const std::size_t tokens = shape.tokens_max;
  const std::size_t picks_max = tokens * shape.top_k;
  // Padding of the stride is zero from here on: rows are copied with it.
  hidden_.resize(tokens * stride_ / sizeof(float));
  ids_.resize(picks_max);
  weights_.resize(picks_max);
  bad_.resize(tokens);
  adapters_.resize(tokens, -1);
  if (shape.gates) logits_.resize(tokens * shape.columns);
  if (shape.shared > 0) shared_weights_.resize(tokens, 1.0F);
  travelling_.resize(picks_max);
  dense_.resize(picks_max);
  to_.resize(tokens);
  shared_to_.resize(tokens, k_no_span);
  counts_.resize(2 * std::size_t{shape.experts});
  terms_.reserve(k_spans_max + 1 + shape.top_k + shape.shared);
}

// --- inputs -------------------------------------------------------------------------------------

expected<void> call_rows::take(const layer_call& call, const transport::routing_snapshot& snapshot,
                               std::size_t layer_index, const layer_router* router) {
  MOETIER_ASSERT(call.tokens <= shape_.tokens_max);
  tokens_ = call.tokens;
  const auto* in = static_cast<const std::byte*>(call.hidden);
  float* out = hidden_.data();
  for (std::uint32_t t = 0; t < tokens_; ++t) {
    arithmetic_.widen(out, in, call.hidden_type, shape_.hidden_size);
    in += call.hidden_pitch;
    out += stride_ / sizeof(float);
  }
  if (call.adapter_ids.empty()) {
    std::fill_n(adapters_.begin(), tokens_, -1);
  } else {
    std::copy(call.adapter_ids.begin(), call.adapter_ids.end(), adapters_.begin());
  }
  if (auto ok = route(call, snapshot, layer_index, router); !ok) return ok;
  if (shape_.shared > 0) weigh_shared(snapshot.tables->layers[layer_index]);
  return {};
}

expected<void> call_rows::route(const layer_call& call, const transport::routing_snapshot& snapshot,
                                std::size_t layer_index, const layer_router* router) {
  const std::span<std::int32_t> ids(ids_.data(), picks());
  const std::span<float> weights(weights_.data(), picks());
  std::fill_n(bad_.begin(), tokens_, std::uint8_t{0});
  if (!call.ids.empty()) {
    std::copy(call.ids.begin(), call.ids.end(), ids.begin());
    std::copy(call.weights.begin(), call.weights.end(), weights.begin());
    return kernels::check_given(shape_.columns, shape_.top_k, tokens_, ids, weights);
  }
  kernels::route_input input{.logits = call.logits,
                             .type = call.logits_type,
                             .pitch_bytes = call.logits_pitch,
                             .tokens = tokens_,
                             .token_ids = call.token_ids,
                             .layer = call.layer.value};
  if (router != nullptr && call.logits == nullptr) {
    MOETIER_ASSERT(shape_.gates);
    const std::size_t columns = shape_.columns;
    kernels::router_logits({.weights = router->matrix.data(),
                            .type = router->type,
                            .columns = shape_.columns,
                            .width = shape_.hidden_size,
                            .bias = router->bias.empty() ? nullptr : router->bias.data()},
                           hidden_.data(), stride_, tokens_, logits_.data(),
                           columns * sizeof(float));
    input.logits = logits_.data();
    input.type = dtype::f32;
    input.pitch_bytes = columns * sizeof(float);
  }
  kernels::routing_params params = snapshot.routing;
  params.top_k = shape_.top_k;
  const layer_routing& layer = snapshot.tables->layers[layer_index];
  if (!shape_.flags_bad_rows) return kernels::route(params, layer, input, ids, weights);
  return kernels::route_flagging(params, layer, input, ids, weights,
                                 std::span(bad_).first(tokens_));
}

void call_rows::weigh_shared(const layer_routing& layer) noexcept {
  if (layer.shared_gate.empty()) return;  // they stay 1
  kernels::router_logits({.weights = layer.shared_gate.data(),
                          .type = dtype::f32,
                          .columns = 1,
                          .width = shape_.hidden_size},
                         hidden_.data(), stride_, tokens_, shared_weights_.data(), sizeof(float));
  for (std::uint32_t t = 0; t < tokens_; ++t)
    shared_weights_[t] = kernels::house_sigmoid(shared_weights_[t]);
}

// --- replicas -----------------------------------------------------------------------------------

expected<void> call_rows::choose(const transport::routing_snapshot& snapshot,
                                 const worker_table& workers, const eplb::choice_key& key,
                                 std::size_t layer_index, transport::split_part part,
                                 worker_mask avoid) {
  const std::size_t k = shape_.top_k;
  const std::size_t first = part.first * k;
  const std::size_t count = part.size * k;
  for (std::size_t pick = first; pick < first + count; ++pick)
    travelling_[pick] = is_identity(pick) ? -1 : ids_[pick];
  const std::int32_t missing =
      eplb::choose_stratified(snapshot.placement, snapshot.shares, layer_index, key,
                              std::span<const std::int32_t>(travelling_).subspan(first, count),
                              std::span(dense_).subspan(first, count), counts_);
  if (missing >= 0) return fail(reason::no_replica, key.layer.value, missing);

  if (avoid != 0) steer(snapshot, workers, layer_index, part, avoid);

  worker_mask live = shape_.shared > 0 ? live_spans(snapshot) : 0;
  if ((live & ~avoid) != 0) live &= ~avoid;
  for (std::uint32_t t = part.first; t < part.first + part.size; ++t) {
    worker_mask mask = 0;
    for (std::size_t j = 0; j < k; ++j) {
      const std::int32_t dense = dense_[t * k + j];
      if (dense >= 0) mask |= worker_mask{1} << workers.span_of(dense);
    }
    to_[t] = mask;
    if (shape_.shared == 0) continue;
    // A worker that gets the row anyway; in turn, so that none has all of them.
    const worker_mask able = mask != 0 ? mask : live;
    if (able == 0) return fail(reason::no_replica, key.layer.value, shape_.experts);
    shared_to_[t] = nth_span(able, t % static_cast<unsigned>(std::popcount(able)));
  }
  return {};
}

// Moves the picks that fell on spans to avoid to another live replica, where there is one; in turn,
// so that none of them gets all.
void call_rows::steer(const transport::routing_snapshot& snapshot, const worker_table& workers,
                      std::size_t layer_index, transport::split_part part,
                      worker_mask avoid) noexcept {
  const std::size_t k = shape_.top_k;
  for (std::size_t pick = part.first * k; pick < (part.first + part.size) * k; ++pick) {
    if (dense_[pick] < 0 || (avoid >> workers.span_of(dense_[pick]) & 1) == 0) continue;
    const auto expert = static_cast<std::uint32_t>(travelling_[pick]);
    std::size_t others = 0;
    for_each_other(snapshot, workers, layer_index, expert, avoid, [&](std::uint32_t) { ++others; });
    if (others == 0) continue;
    std::size_t left = pick % others;
    for_each_other(snapshot, workers, layer_index, expert, avoid, [&](std::uint32_t dense) {
      if (left-- == 0) dense_[pick] = static_cast<std::int32_t>(dense);
    });
  }
}

bool call_rows::can_avoid(const transport::routing_snapshot& snapshot, const worker_table& workers,
                          std::size_t layer_index, worker_mask avoid) const noexcept {
  if (shape_.shared > 0 && (live_spans(snapshot) & ~avoid) == 0) return false;
  for (std::size_t pick = 0; pick < picks(); ++pick) {
    if (is_identity(pick) || ids_[pick] < 0) continue;
    bool any = false;
    for_each_other(snapshot, workers, layer_index, static_cast<std::uint32_t>(ids_[pick]), avoid,
                   [&](std::uint32_t) { any = true; });
    if (!any) return false;
  }
  return true;
}

// --- out ----------------------------------------------------------------------------------------

worker_mask call_rows::count(transport::split_part part, const worker_table& workers,
                             std::array<traffic, k_spans_max>& by_span) const noexcept {
  worker_mask all = 0;
  by_span.fill({});
  const bool exact = shape_.mode == kernels::return_mode::exact;
  for (std::uint32_t t = part.first; t < part.first + part.size; ++t) {
    worker_mask mask = to_[t];
    all |= mask;
    for_each_span(mask, [&](std::size_t s) {
      ++by_span[s].rows;
      if (!exact) ++by_span[s].rows_due;
    });
    if (const std::uint8_t s = shared_to_[t]; s != k_no_span) {
      const bool own_row = shape_.has_second_rows() || routed_to(t, s) == 0;
      all |= worker_mask{1} << s;
      by_span[s].rows += own_row ? 1 : 0;
      by_span[s].rows_due += exact ? shape_.shared : (own_row ? 1 : 0);
    }
    if (!exact) continue;
    for (std::size_t j = 0; j < shape_.top_k; ++j) {
      const std::int32_t dense = dense_[t * shape_.top_k + j];
      if (dense >= 0) ++by_span[workers.span_of(dense)].rows_due;
    }
  }
  return all;
}

void call_rows::write_record(std::uint32_t t, const worker_table& workers, std::size_t span,
                             bool routed, bool shared, std::byte* record) const noexcept {
  const std::size_t k = shape_.top_k;
  const std::size_t positions = shape_.positions();
  std::memcpy(record, &t, sizeof t);
  std::memcpy(record + sizeof t, &adapters_[t], sizeof adapters_[t]);
  std::byte* slots = record + transport::k_record_head;
  std::byte* weights = slots + positions * sizeof(std::int32_t);
  for (std::size_t j = 0; j < positions; ++j) {
    std::int32_t slot = k_no_slot;
    float weight = 0;
    if (j < k) {
      const std::int32_t dense = dense_[t * k + j];
      if (routed && dense >= 0 && workers.span_of(dense) == span) slot = workers.slot_of(dense);
      weight = shape_.weight_at == weight_point::input ? 1.0F : weights_[t * k + j];
    } else {
      if (shared) slot = transport::shared_slot(static_cast<std::uint32_t>(j - k));
      weight = shared_weights_[t];
    }
    std::memcpy(slots + j * sizeof slot, &slot, sizeof slot);
    std::memcpy(weights + j * sizeof weight, &weight, sizeof weight);
  }
  std::byte* end = weights + positions * sizeof(float);
  std::memset(
      end, 0,
      static_cast<std::size_t>(record + transport::record_stride(shape_.positions()) - end));
}

void call_rows::pack(transport::split_part part, const worker_table& workers,
                     const std::array<traffic, k_spans_max>& by_span,
                     const std::span<std::byte>* regions) const noexcept {
  const std::size_t record_stride = transport::record_stride(shape_.positions());
  std::array<std::uint32_t, k_spans_max> cursor{};
  const auto put = [&](std::uint32_t t, std::size_t s, bool routed, bool shared) {
    const std::size_t at = cursor[s]++;
    std::byte* row = regions[s].data() + at * stride_;
    std::memcpy(row, hidden(t), stride_);
    if (routed && shape_.weight_at == weight_point::input) {
      const row_term weighted{weights_[t], hidden(t)};
      arithmetic_.sum(reinterpret_cast<float*>(row), {&weighted, 1}, shape_.hidden_size);
    }
    write_record(t, workers, s, routed, shared,
                 regions[s].data() + by_span[s].rows * stride_ + at * record_stride);
  };
  for (std::uint32_t t = part.first; t < part.first + part.size; ++t) {
    const std::uint8_t shared_to = shared_to_[t];
    for_each_span(to_[t], [&](std::size_t s) {
      put(t, s, true, s == shared_to && !shape_.has_second_rows());
    });
    if (shared_to != k_no_span && (shape_.has_second_rows() || routed_to(t, shared_to) == 0))
      put(t, shared_to, false, true);
  }
}

// --- back ---------------------------------------------------------------------------------------

const float* call_rows::next_row(returns& from, std::size_t span) const noexcept {
  return reinterpret_cast<const float*>(from.payload[span] + from.next[span]++ * stride_);
}

void call_rows::sum(std::uint32_t t, const worker_table& workers, returns& from,
                    float* out) noexcept {
  terms_.clear();
  if (shape_.mode == kernels::return_mode::exact) {
    gather_exact(t, workers, from);
  } else {
    gather_partials(t, from);
  }
  arithmetic_.sum(out, terms_, shape_.hidden_size);
}

void call_rows::gather_partials(std::uint32_t t, returns& from) noexcept {
  for_each_span(to_[t], [&](std::size_t s) { terms_.push_back({1.0F, next_row(from, s)}); });
  if (const std::uint8_t s = shared_to_[t];
      s != k_no_span && (shape_.has_second_rows() || routed_to(t, s) == 0)) {
    terms_.push_back({1.0F, next_row(from, s)});
  }
  if (shape_.columns == shape_.experts) return;
  for (std::size_t pick = t * std::size_t{shape_.top_k}; pick < (t + 1) * std::size_t{shape_.top_k};
       ++pick) {
    if (is_identity(pick)) terms_.push_back({weights_[pick], hidden(t)});
  }
}

void call_rows::gather_exact(std::uint32_t t, const worker_table& workers, returns& from) noexcept {
  const bool on_input = shape_.weight_at == weight_point::input;
  for (std::size_t j = 0; j < shape_.top_k; ++j) {
    const std::size_t pick = t * std::size_t{shape_.top_k} + j;
    if (is_identity(pick)) {
      terms_.push_back({weights_[pick], hidden(t)});
    } else if (dense_[pick] >= 0) {
      terms_.push_back(
          {on_input ? 1.0F : weights_[pick], next_row(from, workers.span_of(dense_[pick]))});
    }
  }
  for (std::uint32_t i = 0; i < shape_.shared; ++i)
    terms_.push_back({shared_weights_[t], next_row(from, shared_to_[t])});
}

}  // namespace moetier::client
