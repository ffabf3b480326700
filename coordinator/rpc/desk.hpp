#pragma once
// The desk between the RPC objects of one server and the rest of the coordinator: requests that
// wait for the core's answer, the newest snapshot with its bytes, and which session is served
// where. One per server. Thread: kj (the server's), but the gateway's answers come in by post().

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "coordinator/rpc/caller.hpp"
#include "coordinator/rpc/rpc_server.hpp"
#include "schemas/tier.capnp.h"
#include "transport/client/link/broadcast.hpp"
#include "transport/client/link/rpc_loop.hpp"

namespace moetier::coordinator {

class session_service;

class desk final {
 public:
  desk(client::rpc_loop& loop, control_port& port, gateway* thin,
       rpc_server::live_counters& counters, const rpc_options& options);
  KJ_DISALLOW_COPY(desk);

  client::rpc_loop& loop() { return loop_; }
  control_port& port() { return port_; }
  rpc_server::live_counters& counters() { return counters_; }

  // Counts a refusal and tells the log's keeper.
  void refused(const caller& who, const char* call, std::uint64_t request, const error& why);
  void tell(const rpc_notice& notice) const {
    if (notice_) notice_(notice);
  }
  const std::string& admin_socket() const { return admin_socket_; }

  // Posts an event with a fresh token; the promise is the core's answer.
  kj::Promise<expected<session_grant>> open(session_request request);
  // `tenant`: the certificate's name, whose session it must be; "" = not proved.
  kj::Promise<expected<session_grant>> resume(session_id session, incarnation_id incarnation,
                                              std::string tenant);
  kj::Promise<expected<void>> attach(session_id session, incarnation_id incarnation,
                                     const transport::source_shape& shape,
                                     transport::member_address address);
  kj::Promise<expected<void>> close(session_id session, incarnation_id incarnation);

  kj::Promise<expected<void>> load_adapter(std::string name, std::string path);
  kj::Promise<expected<void>> drop_adapter(std::string name);

  expected<client::layer_router_ptr> router(std::size_t moe_index) {
    return port_.router(moe_index);
  }

  // The gateway's part of a thin session: its source half, then its calls.
  bool has_gateway() const { return gateway_ != nullptr; }
  kj::Promise<expected<thin_place>> make_place(const thin_session_options& options,
                                               transport::snapshot_ptr snapshot);
  using thin_answer = std::shared_ptr<const expected<client::thin_result>>;
  kj::Promise<thin_answer> forward(session_id session, client::thin_rows rows, duration_ns limit);
  void end_place(session_id session);
  // Whether one more call of a thin session can be taken now.
  expected<void> room_for(session_id session) const;
  // A session's part of its tenant's rate, as of the newest view; 0 = no limit.
  std::uint64_t rate_of(session_id session) const;
  void set_rate(session_id session, std::uint64_t tokens_per_second);

  // Admission stops: new sessions and forwards are refused. `done` runs once none is in service.
  void drain(std::function<void()> done);
  expected<void> admission() const;  // reason::shutting_down once drained
  // Whether the core has room for one more session to open; reason::no_credit else.
  expected<void> room_to_open(const session_request& request) const;

  const transport::snapshot_ptr& snapshot() const { return snapshot_; }  // null before the first
  // Never null; empty until somebody is suspected.
  const transport::suspicion_ptr& suspicion() const { return suspicion_; }
  // Its bytes, if there are any and they fit a message.
  expected<capnp::Data::Reader> snapshot_bytes() const;
  // A snapshot or a suspicion came, or a session ended.
  kj::Promise<void> news() { return news_.next(); }
  void tell_news() { news_.fire(); }

  void enter(session_id session, session_service& service);
  void leave(session_id session, session_service& service);

  // What the core says.
  void take(answer_session answer);
  void take(answer_done answer);
  void take_snapshot(transport::snapshot_ptr snapshot);
  void take_suspicion(transport::suspicion_ptr suspicion);
  void take_ended(const session_ended& ended);

 private:
  // Who waits for what by token. One whose call was given up is fulfilled into the void.
  template <class T>
  using waiting = std::map<request_token, kj::Own<kj::PromiseFulfiller<T>>>;
  template <class T>
  kj::Promise<T> wait_in(waiting<T>& place, request_token token);
  template <class T>
  static void give(waiting<T>& place, request_token token, T value);

  client::rpc_loop& loop_;
  control_port& port_;
  gateway* const gateway_;
  rpc_server::live_counters& counters_;
  const std::string admin_socket_;
  const std::function<void(const rpc_notice&)> notice_;
  request_token next_token_ = 1;
  waiting<expected<session_grant>> grants_;
  waiting<expected<void>> done_;
  waiting<expected<thin_place>> places_;
  waiting<thin_answer> forwards_;
  bool draining_ = false;
  std::function<void()> drained_;
  transport::snapshot_ptr snapshot_;
  std::vector<std::byte> snapshot_bytes_;
  transport::suspicion_ptr suspicion_ = std::make_shared<const transport::suspicion>();
  client::broadcast news_;
  std::map<session_id, session_service*> sessions_;
};

// 64 random bits: incarnations of the gateway's source halves.
std::uint64_t random_bits();

}  // namespace moetier::coordinator
