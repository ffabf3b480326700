#pragma once
// The link of one in-process member: it sends by handing frames to the hub, and receives by copying
// the payload from the sender's bank into the region that the half admits it to. Owned by the
// half. Thread: the half's owner; wake(): any.

#include <chrono>
#include <map>
#include <memory>

#include "transport/exchange/link.hpp"
#include "transport/in_process/hub.hpp"

namespace moetier::transport {

class in_process_link final : public Link {
 public:
  // `peers_max` bounds the frames that can be on their way to this member.
  in_process_link(std::shared_ptr<in_process_hub> hub, fault_hooks::member self,
                  std::uint32_t peers_max);
  ~in_process_link() override;

  const member_address& address() const noexcept override { return address_; }
  expected<link_peer> connect(const member_address& address,
                              std::shared_ptr<bank_memory> memory) override;
  void disconnect(link_peer id) override;
  link_send send(link_peer id, std::uint32_t bank, std::size_t payload_bytes,
                 link_place place) override;
  void progress(FrameSink& sink) override;
  void wait(FrameSink& sink, std::chrono::nanoseconds spin,
            std::chrono::nanoseconds limit) override;
  void wake() noexcept override { self_->wake.signal(); }
  std::uint64_t frames_dropped() const noexcept override;
  std::uint64_t requests_left() const noexcept override { return 0; }

 private:
  struct peer {
    std::shared_ptr<in_process_endpoint> endpoint;
    std::shared_ptr<bank_memory> memory;
    std::uint64_t breaks = 0;  // when it was connected
    bool is_gone = false;
    bool is_reported = false;
  };

  bool is_broken(const peer& p) const;
  void find_lost();
  void receive(FrameSink& sink);
  bool has_input() const;

  std::shared_ptr<in_process_hub> hub_;
  std::shared_ptr<in_process_endpoint> self_;
  member_address address_;
  link_peer last_peer_ = 0;
  std::map<link_peer, peer> peers_;
  std::uint64_t changes_seen_ = 0;
  std::chrono::steady_clock::time_point last_useful_{};
};

}  // namespace moetier::transport
