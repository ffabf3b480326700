#pragma once
// A routing snapshot: all that a source half needs to serve calls, as one immutable value per
// (generation, shares revision): routing method, placement, shares, live workers and how to reach
// them. Only the coordinator makes one; its gateway and the fast clients apply the same value.
// Sources adopt a new one between steps (generation) or at any call (shares revision, same
// generation). Thread: any (an immutable value behind shared_ptr<const>).

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "eplb/placement.hpp"
#include "eplb/shares.hpp"
#include "kernels/routing/route.hpp"
#include "schemas/base/error.hpp"
#include "schemas/base/ids.hpp"
#include "schemas/model/model_description.hpp"
#include "schemas/model/routing_tables.hpp"

namespace moetier::transport {

struct snapshot_worker {
  worker_id worker;
  incarnation_id incarnation;  // of the process that is in service
  bool live = false;           // dead ones keep their place; their slots have share 0
  std::vector<std::byte> address;

  bool operator==(const snapshot_worker&) const = default;
};

struct routing_snapshot {
  epoch_number epoch;
  generation_number generation;
  plan_hash plan;
  std::uint64_t resolution_id = 0;
  model_description model;
  kernels::routing_params routing;
  routing_tables_ptr tables;  // never null; one entry per MoE layer
  eplb::placement placement;
  eplb::shares shares;
  std::vector<snapshot_worker> workers;  // one per placement span, same order
  bool exact_allowed = false;            // the resolved backend is row_invariant
  std::string carrier;                   // "ucx", "in_process"
  std::string backend;                   // identity, for reports
  std::uint32_t shared_experts = 0;      // pseudo-experts that every worker holds beside its slots
  bool lora = false;                     // the tier runs adapters
  std::vector<std::uint32_t> adapters;   // ids that rows may name, rising; empty unless lora

  bool operator==(const routing_snapshot& other) const;  // tables by value
};

using snapshot_ptr = std::shared_ptr<const routing_snapshot>;

// Tables of a model whose routers have nothing beside their matrices.
routing_tables_ptr plain_tables(const model_description& model);

// Whether `a` is newer than `b`: by generation, then shares revision (epoch, counter).
bool is_newer(const routing_snapshot& a, const routing_snapshot& b) noexcept;

// Cap'n Proto bytes (schemas/snapshot.capnp) and back, fully validated: what from_bytes returns
// satisfies every invariant of the parts. reason::frame_malformed names the field.
std::vector<std::byte> to_bytes(const routing_snapshot& snapshot);
expected<routing_snapshot> snapshot_from_bytes(std::span<const std::byte> bytes);

}  // namespace moetier::transport
