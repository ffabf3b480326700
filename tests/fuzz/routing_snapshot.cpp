// Routing snapshots as bytes, schemas/snapshot.capnp, as a source takes them from a coordinator.

#include "transport/snapshot/routing_snapshot.hpp"

#include <cstring>

#include "tests/fuzz/fuzz_target.hpp"
#include "tests/transport/client/toy_experts.hpp"

namespace moetier::fuzz {

void run(std::span<const std::uint8_t> bytes) {
  const auto snapshot = transport::snapshot_from_bytes(std::as_bytes(bytes));
  if (!snapshot) return;
  const auto again = transport::snapshot_from_bytes(transport::to_bytes(*snapshot));
  check(again && *again == *snapshot, "a snapshot changes when it is written and read again");
  check(
      snapshot->tables != nullptr && snapshot->workers.size() == snapshot->placement.spans().size(),
      "a snapshot without tables or workers");
}

std::vector<input> seeds() {
  std::vector<input> all;
  const auto add = [&](const transport::routing_snapshot& snapshot) {
    const auto bytes = transport::to_bytes(snapshot);
    const auto* first = reinterpret_cast<const std::uint8_t*>(bytes.data());
    all.emplace_back(first, first + bytes.size());
  };
  client::toy::tier_shape shape;
  add(client::toy::make_snapshot(shape));
  add(client::toy::make_snapshot(shape, 4, 2, {true, false, true}));
  shape.workers = 1;
  shape.slots_per_worker = 8;
  shape.layers = {1};
  auto snapshot = client::toy::make_snapshot(shape);
  snapshot.lora = true;
  snapshot.adapters = {0, 3};
  snapshot.exact_allowed = true;
  add(snapshot);
  return all;
}

}  // namespace moetier::fuzz
