#pragma once
// Experts that need no weights: y = E_e(x) is a fixed formula whose bits depend on the row and the
// expert alone, so whatever reached a worker can be checked bit by bit. Also the fixed-order sums,
// written a second time and plainly.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <vector>

#include <fmt/core.h>

#include "eplb/placement.hpp"
#include "kernels/backend.hpp"
#include "transport/communication.hpp"
#include "transport/snapshot/routing_snapshot.hpp"

namespace moetier::client::toy {

inline float expert(std::uint32_t e, const float* x, std::uint32_t h, std::uint32_t width) {
  const float a = x[h] * (1.0F + 0.37F * static_cast<float>(e));
  const float b = x[(h + 1 + e) % width] * 0.21F;
  return a - b;
}

inline std::vector<float> exact_row(const float* x, std::uint32_t width, const std::int32_t* ids,
                                    const float* weights, std::uint32_t k) {
  std::vector<float> s(width, 0.0F);
  for (std::uint32_t h = 0; h < width; ++h) {
    for (std::uint32_t j = 0; j < k; ++j) {
      if (ids[j] < 0) continue;
      s[h] = std::fma(weights[j], expert(static_cast<std::uint32_t>(ids[j]), x, h, width), s[h]);
    }
  }
  return s;
}

// The tier's shared expert i.
inline constexpr std::uint32_t k_shared_base = 50;

// A worker's answer to one exchange, as the protocol has it. `expert_of_slot` maps a global slot.
// Returns the rows written.
template <class ExpertOfSlot>
std::uint32_t answer(const transport::source_shape& shape, kernels::return_mode mode,
                     std::uint32_t width, std::uint32_t rows, const std::byte* hidden,
                     const std::byte* records, std::byte* out, ExpertOfSlot expert_of_slot) {
  const std::uint32_t k = shape.top_k;
  std::uint32_t written = 0;
  for (std::uint32_t r = 0; r < rows; ++r) {
    const auto* x = reinterpret_cast<const float*>(hidden + std::size_t{r} * shape.hidden_stride);
    const std::byte* record = records + r * transport::record_stride(k);
    std::int32_t slots[16];
    float weights[16];
    std::memcpy(slots, record + transport::k_record_head, k * 4);
    std::memcpy(weights, record + transport::k_record_head + k * 4, k * 4);
    if (mode == kernels::return_mode::exact) {
      for (std::uint32_t j = 0; j < k; ++j) {
        const std::int32_t shared = transport::shared_expert_of(slots[j]);
        if (slots[j] < 0 && shared < 0) continue;
        auto* y = reinterpret_cast<float*>(out + std::size_t{written++} * shape.return_stride);
        const std::uint32_t e = shared >= 0 ? k_shared_base + static_cast<std::uint32_t>(shared)
                                            : expert_of_slot(slots[j]);
        for (std::uint32_t h = 0; h < width; ++h) y[h] = expert(e, x, h, width);
      }
      continue;
    }
    auto* p = reinterpret_cast<float*>(out + std::size_t{written++} * shape.return_stride);
    for (std::uint32_t h = 0; h < width; ++h) p[h] = 0.0F;
    // Ascending (slot, position).
    std::int32_t last_slot = -1;
    for (;;) {
      std::int32_t slot = INT32_MAX;
      for (std::uint32_t j = 0; j < k; ++j) {
        if (slots[j] > last_slot && slots[j] < slot) slot = slots[j];
      }
      if (slot == INT32_MAX) break;
      last_slot = slot;
      for (std::uint32_t j = 0; j < k; ++j) {
        if (slots[j] != slot) continue;
        const std::uint32_t e = expert_of_slot(slot);
        for (std::uint32_t h = 0; h < width; ++h) {
          p[h] = std::fma(weights[j], expert(e, x, h, width), p[h]);
        }
      }
    }
    for (std::uint32_t j = 0; j < k; ++j) {
      const std::int32_t shared = transport::shared_expert_of(slots[j]);
      if (shared < 0) continue;
      const std::uint32_t e = k_shared_base + static_cast<std::uint32_t>(shared);
      for (std::uint32_t h = 0; h < width; ++h)
        p[h] = std::fma(weights[j], expert(e, x, h, width), p[h]);
    }
  }
  return written;
}

struct tier_shape {
  std::uint32_t hidden_size = 10;  // not a multiple of 4: strides have padding
  std::uint32_t experts = 8;
  std::uint32_t top_k = 3;
  std::uint32_t workers = 3;
  std::uint32_t slots_per_worker = 3;
  std::vector<std::uint16_t> layers = {0, 2, 3};
};

inline transport::routing_snapshot make_snapshot(const tier_shape& shape,
                                                 std::uint64_t generation = 1,
                                                 std::uint32_t revision = 1,
                                                 std::vector<bool> live = {}) {
  std::vector<eplb::worker_span> spans;
  for (std::uint32_t w = 0; w < shape.workers; ++w) {
    spans.push_back({.worker = worker_id(static_cast<std::uint16_t>(w + 1)),
                     .name = fmt::format("w{}", w + 1),
                     .first_slot = w * (shape.slots_per_worker + 2),  // with holes
                     .slots = shape.slots_per_worker});
  }
  transport::routing_snapshot snapshot;
  snapshot.epoch = epoch_number(1);
  snapshot.generation = generation_number(generation);
  snapshot.plan = plan_hash(77 + generation);
  snapshot.model = {.model_type = "qwen3_moe",
                    .hidden_size = shape.hidden_size,
                    .intermediate_size = 4,
                    .experts = shape.experts,
                    .top_k = shape.top_k,
                    .layers_total = 4,
                    .moe_layers = {},
                    .routing = {.method = routing_method::renormalize}};
  for (const std::uint16_t layer : shape.layers)
    snapshot.model.moe_layers.push_back(layer_id(layer));
  snapshot.model.router_width = shape.hidden_size;
  snapshot.model.fingerprint = 42;
  snapshot.tables = transport::plain_tables(snapshot.model);
  snapshot.routing = {{.method = routing_method::renormalize}, shape.experts, shape.top_k};
  auto placement = eplb::default_placement(shape.experts, snapshot.model.moe_layers, spans);
  if (!placement) std::abort();
  snapshot.placement = *placement;
  live.resize(shape.workers, true);
  snapshot.shares = eplb::shares::even(snapshot.placement, live, {epoch_number(1), revision});
  for (std::uint32_t w = 0; w < shape.workers; ++w) {
    snapshot.workers.push_back({.worker = spans[w].worker,
                                .incarnation = incarnation_id(100 + w),
                                .live = live[w],
                                .address = {std::byte{static_cast<unsigned char>(w + 1)}}});
  }
  snapshot.exact_allowed = true;
  snapshot.carrier = "fake";
  return snapshot;
}

inline std::uint32_t expert_in_slot(const eplb::placement& placement, layer_id layer,
                                    std::int32_t slot) {
  const auto index = static_cast<std::size_t>(placement.index_of(layer));
  for (std::uint32_t dense = 0; dense < placement.dense_slots(); ++dense) {
    if (static_cast<std::int32_t>(placement.global_slot(dense).value) == slot) {
      return static_cast<std::uint32_t>(placement.layers()[index].experts[dense]);
    }
  }
  std::abort();
}

// One call's inputs, made from a seed: hidden in f32, distinct ids (some -1), weights.
struct inputs {
  std::uint32_t tokens = 0;
  std::vector<float> hidden;
  std::vector<std::int32_t> ids;
  std::vector<float> weights;

  inputs(const tier_shape& shape, std::uint32_t token_count, unsigned seed) : tokens(token_count) {
    std::minstd_rand random(seed + 1);
    std::uniform_real_distribution<float> value(-2.0F, 2.0F);
    hidden.resize(std::size_t{tokens} * shape.hidden_size);
    for (float& x : hidden) x = value(random);
    std::vector<std::int32_t> all(shape.experts);
    for (std::uint32_t t = 0; t < tokens; ++t) {
      for (std::uint32_t e = 0; e < shape.experts; ++e) all[e] = static_cast<std::int32_t>(e);
      std::shuffle(all.begin(), all.end(), random);
      for (std::uint32_t j = 0; j < shape.top_k; ++j) {
        ids.push_back(random() % 9 == 0 ? -1 : all[j]);
        weights.push_back(value(random));
      }
    }
  }

  std::vector<float> exact(const tier_shape& shape) const {
    std::vector<float> out;
    for (std::uint32_t t = 0; t < tokens; ++t) {
      const auto row = exact_row(hidden.data() + std::size_t{t} * shape.hidden_size,
                                 shape.hidden_size, ids.data() + std::size_t{t} * shape.top_k,
                                 weights.data() + std::size_t{t} * shape.top_k, shape.top_k);
      out.insert(out.end(), row.begin(), row.end());
    }
    return out;
  }
};

}  // namespace moetier::client::toy
