#pragma once
// The link of one half over memory that processes of one host share. Each pair has a lane of its
// own each way, so no peer can hold up another: not by being slow, frozen or killed. A frame is
// copied once, by its receiver. Who sleeps is woken by a futex; who has ended is seen by its
// process descriptor, within a look's interval.
// Owned by the half. Thread: the half's owner; wake(): any.

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <vector>

#include "transport/exchange/link.hpp"
#include "transport/shared_memory/front.hpp"
#include "transport/shared_memory/lane.hpp"

namespace moetier::transport {

class shared_memory_link final : public Link {
 public:
  static expected<std::unique_ptr<Link>> make();
  ~shared_memory_link() override;

  const member_address& address() const noexcept override { return address_; }
  std::size_t carrier_bytes() const noexcept override { return k_lane_bytes; }
  expected<link_peer> connect(const member_address& address,
                              std::shared_ptr<bank_memory> memory) override;
  void disconnect(link_peer id) override;
  link_send send(link_peer id, std::uint32_t head, std::size_t payload_bytes,
                 link_place place) override;
  void progress(FrameSink& sink) override;
  void wait(FrameSink& sink, std::chrono::nanoseconds spin,
            std::chrono::nanoseconds limit) override;
  void wake() noexcept override;
  std::uint64_t frames_dropped() const noexcept override;
  std::uint64_t requests_left() const noexcept override { return 0; }

 private:
  struct peer {
    std::unique_ptr<outgoing_lane> lane;  // null: lost
    bool is_over = false;                 // what it sent before is still to be taken
  };

  explicit shared_memory_link(std::unique_ptr<front> self);
  void take_offers();
  void try_offers_again();
  bool look_after_peers();  // whether it was time for that

  std::unique_ptr<front> self_;
  member_address address_;
  link_peer last_peer_ = 0;
  std::map<link_peer, peer> peers_;
  // An offer that could not be opened, as descriptors or memory were short; or whose sender is
  // gone.
  struct refused_offer {
    lane_offer offer;
    std::uint32_t tries = 0;
  };

  std::vector<std::unique_ptr<incoming_lane>> incoming_;
  std::vector<refused_offer> refused_;
  std::uint32_t heard_ = 0;  // of the bell
  std::uint64_t dropped_by_ended_ = 0;
  std::atomic<bool> woken_{false};
  std::chrono::steady_clock::time_point last_useful_{};
  std::chrono::steady_clock::time_point last_look_{};
};

}  // namespace moetier::transport
