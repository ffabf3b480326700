#include "eplb/placement.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

#include <fmt/core.h>

#include "eplb/canonical.hpp"
#include "schemas/base/assert.hpp"
#include "schemas/base/limits.hpp"

namespace moetier::eplb {
namespace {

unexpected_error refuse(std::string what) { return fail(reason::placement_invalid, what); }

expected<void> check_spans(std::span<const worker_span> spans) {
  if (spans.empty() || spans.size() > k_workers_max) {
    return refuse(fmt::format("{} workers; 1 to {} are allowed", spans.size(), k_workers_max));
  }
  std::uint64_t end = 0;
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < spans.size(); ++i) {
    const worker_span& s = spans[i];
    if (i > 0 && s.worker <= spans[i - 1].worker) {
      return refuse(fmt::format("worker {} follows worker {}; ids must rise", s.worker.value,
                                spans[i - 1].worker.value));
    }
    if (s.slots == 0 || s.slots > k_slots_per_worker_max) {
      return refuse(fmt::format("worker {} has {} slots per layer; 1 to {} are allowed",
                                s.worker.value, s.slots, k_slots_per_worker_max));
    }
    if (s.name.size() > k_worker_name_bytes_max) {
      return refuse(fmt::format("the name of worker {} has {} bytes; at most {}", s.worker.value,
                                s.name.size(), k_worker_name_bytes_max));
    }
    if (s.first_slot < end) {
      return refuse(fmt::format("worker {} starts at slot {}, inside the slots before it",
                                s.worker.value, s.first_slot));
    }
    end = std::uint64_t{s.first_slot} + s.slots;
    total += s.slots;
  }
  if (total > k_slots_per_layer_max || end > k_slots_per_layer_max) {
    return refuse(
        fmt::format("{} slots per layer; at most {}", std::max(total, end), k_slots_per_layer_max));
  }
  return {};
}

// First expert that stands twice in [first, first + count) of a layer's slots, or -1.
std::int32_t doubled_expert(std::span<const std::int32_t> slots, std::vector<bool>& seen) {
  std::fill(seen.begin(), seen.end(), false);
  for (const std::int32_t e : slots) {
    if (e < 0) continue;
    const auto i = static_cast<std::size_t>(e);
    if (seen[i]) return e;
    seen[i] = true;
  }
  return -1;
}

}  // namespace

expected<placement> placement::make(std::uint32_t experts, std::vector<worker_span> spans,
                                    std::vector<layer_slots> layers) {
  if (experts == 0 || experts > k_experts_max) {
    return refuse(fmt::format("{} experts; 1 to {} are allowed", experts, k_experts_max));
  }
  if (auto ok = check_spans(spans); !ok) return unexpected_error(ok.error());
  if (layers.size() > k_layers_max) {
    return refuse(fmt::format("{} layers; at most {}", layers.size(), k_layers_max));
  }

  placement p;
  p.experts_ = experts;
  for (const worker_span& s : spans) {
    p.dense_start_.push_back(p.dense_slots_);
    p.dense_slots_ += s.slots;
  }
  std::vector<bool> seen(experts);
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const layer_slots& l = layers[i];
    if (i > 0 && l.layer <= layers[i - 1].layer) {
      return refuse(fmt::format("layer {} follows layer {}; layers must rise", l.layer.value,
                                layers[i - 1].layer.value));
    }
    if (l.experts.size() != p.dense_slots_) {
      return refuse(fmt::format("layer {} lists {} slots; the workers have {}", l.layer.value,
                                l.experts.size(), p.dense_slots_));
    }
    for (std::size_t d = 0; d < l.experts.size(); ++d) {
      if (l.experts[d] < -1 || l.experts[d] >= static_cast<std::int32_t>(experts)) {
        return refuse(
            fmt::format("layer {} slot {} names expert {}; allowed: -1 (empty) or 0 to {}",
                        l.layer.value, d, l.experts[d], experts - 1));
      }
    }
    for (std::size_t s = 0; s < spans.size(); ++s) {
      const std::span<const std::int32_t> own(l.experts.data() + p.dense_start_[s], spans[s].slots);
      if (const std::int32_t e = doubled_expert(own, seen); e >= 0) {
        return refuse(fmt::format("layer {} worker {} holds expert {} twice", l.layer.value,
                                  spans[s].worker.value, e));
      }
    }
  }

  // Both directions of the map are built in one pass per layer: count, prefix sums, fill.
  for (const layer_slots& l : layers) {
    std::vector<std::uint32_t> start(experts + 1, 0);
    for (const std::int32_t e : l.experts) {
      if (e >= 0) ++start[static_cast<std::size_t>(e) + 1];
    }
    for (std::uint32_t e = 0; e < experts; ++e) {
      if (start[e + 1] == 0) {
        return refuse(fmt::format("layer {} has no slot for expert {}", l.layer.value, e));
      }
      start[e + 1] += start[e];
    }
    std::vector<std::uint32_t> next(start.begin(), start.end() - 1);
    std::vector<std::uint32_t> dense(start[experts]);
    for (std::uint32_t d = 0; d < p.dense_slots_; ++d) {
      if (l.experts[d] >= 0) dense[next[static_cast<std::size_t>(l.experts[d])]++] = d;
    }
    p.replica_start_.push_back(std::move(start));
    p.replica_dense_.push_back(std::move(dense));
  }
  p.spans_ = std::move(spans);
  p.layers_ = std::move(layers);
  return p;
}

int placement::index_of(layer_id layer) const noexcept {
  const auto at = std::lower_bound(layers_.begin(), layers_.end(), layer,
                                   [](const layer_slots& l, layer_id id) { return l.layer < id; });
  if (at == layers_.end() || at->layer != layer) return -1;
  return static_cast<int>(at - layers_.begin());
}

std::span<const std::uint32_t> placement::replicas(std::size_t layer_index,
                                                   std::uint32_t expert) const noexcept {
  MOETIER_DEBUG_ASSERT(layer_index < layers_.size() && expert < experts_);
  const auto& start = replica_start_[layer_index];
  return {replica_dense_[layer_index].data() + start[expert], start[expert + 1] - start[expert]};
}

std::size_t placement::span_of(std::uint32_t dense) const noexcept {
  MOETIER_DEBUG_ASSERT(dense < dense_slots_);
  const auto at = std::upper_bound(dense_start_.begin(), dense_start_.end(), dense);
  return static_cast<std::size_t>(at - dense_start_.begin()) - 1;
}

slot_id placement::global_slot(std::uint32_t dense) const noexcept {
  const std::size_t s = span_of(dense);
  return slot_id{spans_[s].first_slot + (dense - dense_start_[s])};
}

int placement::span_index(worker_id worker) const noexcept {
  for (std::size_t i = 0; i < spans_.size(); ++i) {
    if (spans_[i].worker == worker) return static_cast<int>(i);
  }
  return -1;
}

std::uint32_t placement::first_dense(std::size_t span_index) const noexcept {
  MOETIER_ASSERT(span_index < dense_start_.size());
  return dense_start_[span_index];
}

bool placement::operator==(const placement& other) const noexcept {
  return experts_ == other.experts_ && spans_ == other.spans_ && layers_ == other.layers_;
}

std::vector<std::byte> placement::canonical_bytes() const {
  canonical_writer w;
  w.u32(1);  // version of this form
  w.u32(experts_);
  w.u32(static_cast<std::uint32_t>(spans_.size()));
  for (const worker_span& s : spans_) {
    w.u32(s.worker.value);
    w.u32(s.first_slot);
    w.u32(s.slots);
    w.text(s.name);
  }
  w.u32(static_cast<std::uint32_t>(layers_.size()));
  for (const layer_slots& l : layers_) {
    w.u32(l.layer.value);
    for (const std::int32_t e : l.experts) w.u32(static_cast<std::uint32_t>(e));
  }
  return w.take();
}

expected<placement> placement::from_canonical(std::span<const std::byte> bytes) {
  canonical_reader r(bytes);
  if (r.u32() != 1) return refuse("unknown version of the canonical form");
  const std::uint32_t experts = r.u32();
  const std::uint32_t span_count = r.u32();
  if (!r.good() || span_count > k_workers_max) return refuse("canonical form: workers");
  std::vector<worker_span> spans(span_count);
  std::uint64_t slots = 0;
  for (worker_span& s : spans) {
    s.worker = worker_id{r.u16()};
    s.first_slot = r.u32();
    s.slots = r.u32();
    s.name = r.text(k_worker_name_bytes_max);
    slots += s.slots;
  }
  const std::uint32_t layer_count = r.u32();
  if (!r.good() || layer_count > k_layers_max || slots > k_slots_per_layer_max ||
      r.left() != std::uint64_t{layer_count} * (slots + 1) * 4) {
    return refuse("canonical form: length");
  }
  std::vector<layer_slots> layers(layer_count);
  for (layer_slots& l : layers) {
    l.layer = layer_id{r.u16()};
    l.experts.resize(slots);
    for (std::int32_t& e : l.experts) e = static_cast<std::int32_t>(r.u32());
  }
  if (!r.good()) return refuse("canonical form: ids");
  return make(experts, std::move(spans), std::move(layers));
}

}  // namespace moetier::eplb
