#pragma once
// The loop side of a link: keeps one connection to the coordinator up, and with it every session's
// lease, watch and, after a loss, its resumption. A call waits for a usable connection and is sent
// again over the next one when its connection is lost, until its limit: all methods of the protocol
// may be repeated.
//
// A direct session is resumed under its id. A thin one holds no state, so it is opened anew and the
// caller's id stays its name here.
//
// Thread: kj (the loop's).

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "transport/client/link/broadcast.hpp"
#include "transport/client/link/connection.hpp"
#include "transport/client/link/dialer.hpp"
#include "transport/client/link/link_news.hpp"
#include "transport/client/link/tier_link.hpp"

namespace moetier::client {

class contact final : private kj::TaskSet::ErrorHandler {
 public:
  contact(rpc_loop& loop, link_news& news, std::vector<socket_address> addresses,
          std::uint64_t client, first_contact first, std::optional<dialer> tls);
  ~contact() noexcept(false);
  KJ_DISALLOW_COPY(contact);

  template <class T>
  using reply = kj::Promise<expected<T>>;

  reply<void> connected(duration_ns limit);  // usable, or why it cannot be
  reply<transport::snapshot_ptr> snapshot(duration_ns limit);
  reply<session_granted> open(session_wish wish, duration_ns limit);
  reply<void> attach(session_id session, transport::source_shape shape,
                     transport::member_address address, duration_ns limit);
  reply<void> close(session_id session, duration_ns limit);
  // Requires: what `call` points to lives until the answer is there.
  reply<thin_result> forward(session_id session, const thin_call& call);
  // As many rows of a layer's router as one message takes.
  struct router_rows {
    layer_router
        part;  // columns of the whole matrix; `matrix` holds whole rows from the first one asked
  };
  reply<router_rows> router(layer_id layer, std::uint32_t first_row, duration_ns limit);
  reply<std::string> document(admin_document which, duration_ns limit);
  reply<std::string> load_adapter(std::string name, std::string path, duration_ns limit);
  reply<std::string> drop_adapter(std::string name, duration_ns limit);
  reply<void> set_log_level(std::string level, duration_ns limit);

  void report_late(session_id session, worker_id worker, incarnation_id incarnation);

  // Runs `work` to its end; dropped with this object.
  void add(kj::Promise<void> work) { tasks_.add(kj::mv(work)); }

 private:
  struct session {
    session_wish wish;
    session_id server_id;  // differs from our name for it once a thin session was opened anew
    duration_ns lease = 0;
    duration_ns call_deadline = 0;
    std::shared_ptr<std::atomic<std::uint64_t>> tokens_per_second;
    std::shared_ptr<session_use> use;
    kj::Maybe<rpc::Session::Client> capability;
    std::uint64_t number = 0;    // connection of the capability
    std::optional<error> ended;  // by the coordinator
  };

  // One try of a call on the connection in use; null: not possible now, try after the next change.
  template <class T>
  using attempt = std::function<kj::Maybe<reply<T>>(duration_ns left)>;
  template <class T>
  reply<T> ask(const char* name, duration_ns limit, duration_ns slack, attempt<T> once);
  template <class T>
  reply<T> tries(std::shared_ptr<attempt<T>> once, time_ns end);

  kj::Promise<void> keep_connected();
  kj::Promise<void> stay_connected();  // until the connection is lost
  kj::Promise<void> give_up_or_pause();
  kj::Promise<void> start_over();
  kj::Promise<void> pause();  // between two rounds of tries
  kj::Promise<bool> try_connect(std::size_t index);
  kj::Promise<bool> prove(int fd);
  kj::Promise<bool> greet();
  void use_connection();
  void drop_connection();
  kj::Promise<void> beat();
  void renew(session_id id, session& s);
  kj::Promise<void> resume(session_id id, std::uint64_t number);
  kj::Promise<void> watch(session_id id, std::uint64_t number);
  void lose(std::uint64_t number);
  void lose_session(session_id id, error why);
  void forget(session_id id);

  // The session if its capability is of the connection in use.
  session* ready(session_id id);
  // Why a call of this session can never be made; nullopt while it can or may yet.
  std::optional<error> refusal(session_id id) const;
  expected<transport::snapshot_ptr> adopt(capnp::Data::Reader bytes);
  void suspect(rpc::Session::Suspicion::Reader told);
  expected<session_granted> take_grant(rpc::Tier::Grant::Reader grant);
  void write_call(rpc::Call::Builder to, duration_ns limit, std::uint64_t request = 0);
  bool usable() const { return connection_.get() != nullptr && greeted_; }

  void taskFailed(kj::Exception&& exception) override;

  rpc_loop& loop_;
  link_news& news_;
  const std::vector<socket_address> addresses_;
  const std::uint64_t client_;
  const first_contact first_;
  std::optional<dialer> tls_;  // absent = in the clear
  std::uint64_t next_request_ = 1;
  std::uint64_t jitter_;

  kj::Own<connection> connection_;
  bool greeted_ = false;      // the protocol was compared: calls may use connection_
  std::uint64_t number_ = 0;  // of the connection in use; rises with every loss
  kj::Own<kj::PromiseFulfiller<void>> lost_;  // of the connection in use
  bool was_connected_ = false;
  duration_ns backoff_ = k_backoff_first;
  std::string last_failure_ = "not tried yet";
  bool all_refused_ = false;       // by every address in the newest round
  bool disproved_ = false;         // one side refused the other's certificate in it
  std::optional<error> hopeless_;  // no common protocol, or nobody there and no patience
  std::map<session_id, std::unique_ptr<session>> sessions_;
  session_id highest_;                     // ever opened here
  broadcast changed_;                      // connection, session or hope changed
  kj::Own<kj::TaskSet> connection_tasks_;  // end with the connection
  kj::TaskSet tasks_;
};

}  // namespace moetier::client
