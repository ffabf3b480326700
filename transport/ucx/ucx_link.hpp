#pragma once
// The link of one half over UCX: a frame is one active message, the wire header its header. Short
// payloads come with it and are copied in the callback; long ones are fetched straight into the
// region that the half admits. Nothing acts inside a callback: it posts the receive and pushes an
// event, and progress() hands events to the half.
//
// A peer that fails is an event. Endpoints are closed by force and nobody is waited for; what the
// library still holds of a closed peer keeps its memory alive, is counted, and at the end is leaked
// rather than waited for. Owned by the half. Thread: the half's owner; wake(): any.

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "transport/exchange/link.hpp"
#include "transport/exchange/wake_event.hpp"
#include "transport/ucx/ucx_context.hpp"

namespace moetier::transport {

// Ids of active messages, fixed for ever.
inline constexpr unsigned k_ucx_dispatch_id = 1;
inline constexpr unsigned k_ucx_give_back_id = 2;
inline constexpr unsigned k_ucx_probe_id = 3;

class ucx_link final : public Link {
 public:
  static expected<std::unique_ptr<Link>> make(const carrier_options& options, member_role role);
  ~ucx_link() override;

  const member_address& address() const noexcept override { return address_; }
  expected<link_peer> connect(const member_address& address,
                              std::shared_ptr<bank_memory> memory) override;
  void disconnect(link_peer id) override;
  link_send send(link_peer id, std::uint32_t bank, std::size_t payload_bytes,
                 link_place place) override;
  void progress(FrameSink& sink) override;
  void wait(FrameSink& sink, std::chrono::nanoseconds spin,
            std::chrono::nanoseconds limit) override;
  void wake() noexcept override { wake_.signal(); }
  std::uint64_t frames_dropped() const noexcept override { return 0; }
  std::uint64_t requests_left() const noexcept override;

 private:
  struct peer {
    ucx_link* link = nullptr;
    link_peer id = 0;
    ucp_ep_h endpoint = nullptr;
    void* closing = nullptr;  // the close's request while it runs
    std::shared_ptr<bank_memory> memory;
  };
  // A send or a receive that the library has not finished.
  struct request {
    ucx_link* link = nullptr;
    link_peer peer = 0;  // of a send; receives do not know theirs
    link_place place = 0;
    std::shared_ptr<bank_memory> memory;  // in use while set
  };
  struct event {
    enum class kind : std::uint8_t { landed, spoiled, sent, lost };
    kind what = kind::landed;
    std::uint64_t subject = 0;  // place, or peer if lost
  };

  ucx_link(std::unique_ptr<ucx_context> context, member_role role);
  ucs_status_t set_handler();

  static ucs_status_t on_frame(void* self, const void* head, std::size_t head_bytes, void* data,
                               std::size_t bytes, const ucp_am_recv_param_t* param);
  static void on_received(void* request, ucs_status_t status, std::size_t bytes, void* user_data);
  static void on_sent(void* request, ucs_status_t status, void* user_data);
  static void on_peer_error(void* arg, ucp_ep_h endpoint, ucs_status_t status);

  ucs_status_t receive(void* descriptor, const landing& to);
  bool advance(FrameSink& sink);  // whether the library moved anything
  void look_after_peers();
  void handle(FrameSink& sink);
  void close(peer& p);
  bool is_closed(peer& p);
  void sweep();
  request& take_request();
  void put_request(request& r);
  void push(event::kind what, std::uint64_t subject);

  std::unique_ptr<ucx_context> context_;
  member_address address_;
  unsigned send_id_;
  unsigned receive_id_;
  wake_event wake_;
  FrameSink* sink_ = nullptr;  // while progress() or wait() runs
  bool useful_ = false;        // something of ours moved
  std::chrono::steady_clock::time_point last_useful_{};
  std::chrono::steady_clock::time_point last_keepalive_{};
  link_peer last_peer_ = 0;
  std::map<link_peer, std::unique_ptr<peer>> peers_;
  std::vector<std::unique_ptr<peer>> closing_;
  std::vector<std::unique_ptr<request>> requests_;
  std::vector<request*> idle_requests_;
  std::vector<event> events_;
};

}  // namespace moetier::transport
