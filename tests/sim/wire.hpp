#pragma once
// The data plane of the simulation: a carrier whose links double, delay and damage frames, hold one
// direction of a pair back for a while, and tell of a dead peer late or never. They lose nothing
// between living members, as the connections of every carrier promise, unless a connection breaks:
// then what is under way is gone, and each end sees it in its own time. The product's own protocol
// (transport/exchange) runs over it on both sides. Owned by the world. Thread: owner.

#include <array>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "schemas/wire/wire_header.hpp"
#include "tests/sim/dice.hpp"
#include "tests/sim/schedule.hpp"
#include "transport/communication.hpp"

namespace moetier::sim {

struct wire_rates {  // chances in parts of 100,000
  std::uint32_t repeat = 0;
  std::uint32_t damage = 0;        // of a payload: the connection vouches for the header
  std::uint32_t silent_death = 0;  // a dead peer is never noticed by this carrier
};

class wire final {
 public:
  using endpoint_id = std::uint64_t;
  struct frame {
    std::array<std::byte, k_wire_header_bytes> head;
    std::vector<std::byte> payload;
  };
  struct endpoint {
    endpoint_id id = 0;
    bool gone = false;
    std::deque<frame> inbox;
    std::set<endpoint_id> lost;                        // peers that are known to be gone
    std::map<endpoint_id, std::uint64_t> breaks_seen;  // with peers that live
    std::function<void()> on_change;  // a frame or the news of a death came; must not run the half
  };

  wire(schedule& clock, dice& chance) : clock_(clock), dice_(chance) {}
  wire_rates rates;

  // Halves over this wire. `on_change` as above; ended() makes the endpoint as a killed process
  // leaves it.
  std::unique_ptr<transport::SourceHalf> make_source(const transport::source_options& options,
                                                     std::function<void()> on_change,
                                                     endpoint_id& id);
  std::unique_ptr<transport::WorkerHalf> make_worker(const transport::worker_options& options,
                                                     std::function<void()> on_change,
                                                     endpoint_id& id);
  void end(endpoint_id id);
  // Frames from one to the other wait until then.
  void cut(endpoint_id from, endpoint_id to, time_ns until) { cuts_[{from, to}] = until; }
  void heal() { cuts_.clear(); }
  // The connections between the two end; later ones are whole.
  void break_between(endpoint_id a, endpoint_id b);

 private:
  class link;
  std::shared_ptr<endpoint> join(std::function<void()> on_change);
  void carry(endpoint_id from, endpoint_id to, frame what, std::uint64_t breaks);
  std::uint64_t breaks_between(endpoint_id a, endpoint_id b) const;
  endpoint* find(endpoint_id id);

  schedule& clock_;
  dice& dice_;
  endpoint_id last_ = 0;
  std::map<endpoint_id, std::weak_ptr<endpoint>> endpoints_;
  std::map<std::pair<endpoint_id, endpoint_id>, time_ns> cuts_;
  std::map<std::pair<endpoint_id, endpoint_id>, time_ns> arrivals_;
  std::map<std::pair<endpoint_id, endpoint_id>, std::uint64_t> breaks_;  // the smaller id first
};

// The carrier as a source session asks for it: one half, made at once.
class wire_carrier final : public transport::Communication {
 public:
  wire_carrier(wire& plane, std::function<void()> on_change, wire::endpoint_id& id)
      : wire_(plane), on_change_(std::move(on_change)), id_(id) {}
  std::string_view name() const noexcept override { return "model"; }
  transport::comm_capabilities capabilities() const noexcept override {
    return {.independent = true, .host_memory = true};
  }
  expected<std::unique_ptr<transport::SourceHalf>> make_source(
      const transport::source_options& options) override {
    return wire_.make_source(options, on_change_, id_);
  }
  expected<std::unique_ptr<transport::WorkerHalf>> make_worker(
      const transport::worker_options&) override {
    return fail(reason::not_enabled, "a worker half");
  }
  std::string describe() const override { return "model"; }

 private:
  wire& wire_;
  std::function<void()> on_change_;
  wire::endpoint_id& id_;
};

}  // namespace moetier::sim
