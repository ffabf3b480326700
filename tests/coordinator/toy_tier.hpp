#pragma once
// Toy workers on an in-process carrier and the snapshot that places experts on them: what a gateway
// needs to serve. Thread: owner.

#include "tests/coordinator/toy_worker.hpp"
#include "transport/in_process/carrier.hpp"

namespace moetier::coordinator {

class toy_tier final {
 public:
  explicit toy_tier(kernels::return_mode mode = kernels::return_mode::exact)
      : carrier(transport::make_in_process({})) {
    for (std::uint32_t w = 0; w < shape.workers; ++w) {
      workers.push_back(std::make_unique<toy_worker>(
          *carrier,
          transport::worker_identity{worker_id(static_cast<std::uint16_t>(w + 1)),
                                     incarnation_id(100 + w)},
          mode));
    }
    place(1, {});
  }

  // The next shares revision, with these workers live (empty: all).
  void place(std::uint32_t revision, std::vector<bool> live) {
    auto made = client::toy::make_snapshot(shape, 1, revision, std::move(live));
    made.carrier = "in_process";
    for (std::uint32_t w = 0; w < shape.workers; ++w) {
      made.workers[w].address = workers[w]->address();
    }
    snapshot = std::make_shared<const transport::routing_snapshot>(std::move(made));
    for (auto& w : workers) w->place(snapshot);
  }

  expected<void> attach(const transport::source_identity& source,
                        const transport::source_shape& source_shape,
                        const transport::member_address& address) {
    for (auto& w : workers) {
      if (auto ok = w->attach(source, source_shape, address); !ok) return ok;
    }
    return {};
  }

  client::toy::tier_shape shape;
  std::unique_ptr<transport::Communication> carrier;
  std::vector<std::unique_ptr<toy_worker>> workers;
  transport::snapshot_ptr snapshot;
};

}  // namespace moetier::coordinator
