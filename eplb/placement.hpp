#pragma once
// A placement says which expert sits in which slot, per layer: an immutable value, made by a
// planner or read from a plan file, carried in a plan, read by everyone. It never knows addresses,
// loads or weights.
//
// Slots of a worker are contiguous: global slot = the worker's first slot + local slot; the ranges
// of two workers do not overlap and may leave holes. All layers have the same slots. "Dense
// position" = index over the spans' slots concatenated in span order; layers store experts by dense
// position. Thread: any (an immutable value).

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "schemas/base/error.hpp"
#include "schemas/base/ids.hpp"

namespace moetier::eplb {

struct worker_span {
  worker_id worker;
  std::string name;              // configured name: how a restarted worker finds its place again
  std::uint32_t first_slot = 0;  // global
  std::uint32_t slots = 0;       // per layer

  bool operator==(const worker_span&) const = default;
};

struct layer_slots {
  layer_id layer;
  std::vector<std::int32_t> experts;  // by dense position; -1 = empty slot

  bool operator==(const layer_slots&) const = default;
};

class placement final {
 public:
  placement() = default;  // of no worker and no layer

  // Checks everything (reason::placement_invalid names the first breach with layer, worker, slot):
  // spans rise by worker id and do not overlap, 1..k_slots_per_worker_max slots each; every layer
  // has an entry per dense position, ids in -1..experts-1, every expert at least one slot, no
  // expert twice on one worker.
  static expected<placement> make(std::uint32_t experts, std::vector<worker_span> spans,
                                  std::vector<layer_slots> layers);

  std::uint32_t experts() const noexcept { return experts_; }
  std::span<const worker_span> spans() const noexcept { return spans_; }
  std::span<const layer_slots> layers() const noexcept { return layers_; }
  std::uint32_t dense_slots() const noexcept { return dense_slots_; }

  // Index into layers() or -1.
  int index_of(layer_id layer) const noexcept;
  // Dense positions of `expert` in layers()[layer_index], ascending. Requires: expert < experts().
  std::span<const std::uint32_t> replicas(std::size_t layer_index,
                                          std::uint32_t expert) const noexcept;
  // Span index that holds a dense position, and the global slot of it.
  std::size_t span_of(std::uint32_t dense) const noexcept;
  slot_id global_slot(std::uint32_t dense) const noexcept;
  // Dense position of a span's local slot 0.
  std::uint32_t first_dense(std::size_t span_index) const noexcept;
  // Span index of a worker, or -1.
  int span_index(worker_id worker) const noexcept;

  // Canonical bytes: equal placements give equal bytes; part of the plan hash.
  std::vector<std::byte> canonical_bytes() const;
  static expected<placement> from_canonical(std::span<const std::byte> bytes);

  bool operator==(const placement& other) const noexcept;

 private:
  std::uint32_t experts_ = 0;
  std::uint32_t dense_slots_ = 0;
  std::vector<worker_span> spans_;
  std::vector<layer_slots> layers_;
  std::vector<std::uint32_t> dense_start_;                 // per span
  std::vector<std::vector<std::uint32_t>> replica_start_;  // per layer: experts_ + 1 offsets
  std::vector<std::vector<std::uint32_t>> replica_dense_;  // per layer: dense positions by expert
};

// Slots per worker without replicas: base = E div W, the first E mod W workers one more.
std::vector<std::uint32_t> even_partition(std::uint32_t experts, std::uint32_t workers);

// The default: slot (w, l) holds expert (w·E div W + l) mod E; without redundant slots and uneven
// division the contiguous partition. reason::placement_invalid with the ids if experts are lost,
// partition_invalid with a remedy if slots < E.
expected<placement> default_placement(std::uint32_t experts, std::span<const layer_id> layers,
                                      std::span<const worker_span> spans);

}  // namespace moetier::eplb
