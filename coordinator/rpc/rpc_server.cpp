#include "coordinator/rpc/rpc_server.hpp"

#include <netdb.h>
#include <pthread.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <future>
#include <map>
#include <utility>

#include <fmt/core.h>
#include <kj/io.h>

#include "coordinator/rpc/client_connection.hpp"
#include "coordinator/rpc/limits.hpp"
#include "coordinator/rpc/listening_socket.hpp"
#include "schemas/base/assert.hpp"
#include "transport/client/link/socket_address.hpp"

namespace moetier::coordinator {
namespace {

// Clients' listener or the administrators' one, and who came by it.
struct gate {
  gate(listening_socket s, link_kind k, const connection_limits& limits)
      : socket(std::move(s)), kind(k), book(limits) {}

  listening_socket socket;
  const link_kind kind;
  connection_book book;
  kj::Own<client::fd_readiness> acceptable;
  std::map<connection_book::number, kj::Own<kj::PromiseFulfiller<void>>> leave;
};

std::string peer_text(int fd) {
  client::socket_address peer;
  peer.length = sizeof peer.bytes;
  char host[64] = "?";
  if (getpeername(fd, peer.get(), &peer.length) != 0) return host;
  if (peer.is_unix()) return "unix";
  getnameinfo(peer.get(), peer.length, host, sizeof host, nullptr, 0, NI_NUMERICHOST);
  return fmt::format("{} port {}", host, peer.port());
}

void add_one(std::atomic<std::uint64_t>& counter) {
  counter.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

// What lives on the server's thread: the loop, the desk, the listening sockets, the connections.
class rpc_server::running final : private kj::TaskSet::ErrorHandler {
 public:
  running(control_port& port, gateway* thin, live_counters& counters, const rpc_options& options,
          std::vector<std::unique_ptr<gate>> gates)
      : desk_(loop_, port, thin, counters, options),
        credential_(options.credential),
        administrators_(options.administrators),
        gates_(std::move(gates)),
        tasks_(*this) {
    // Before the first client is let in.
    if (const auto view = port.view()) desk_.take_snapshot(view->snapshot);
  }
  KJ_DISALLOW_COPY(running);

  void serve(std::promise<running*>& started) {
    auto stop = kj::newPromiseAndFulfiller<void>();
    stop_ = kj::mv(stop.fulfiller);
    for (auto& g : gates_) {
      g->acceptable = loop_.observe(g->socket.fd());
      tasks_.add(accept_all(*g));
    }
    tasks_.add(sweep());
    started.set_value(this);
    loop_.run(kj::mv(stop.promise));
    for (auto& g : gates_) g->acceptable = nullptr;
  }

  void post(std::function<void()> job) { loop_.post(std::move(job)); }
  void stop() { stop_->fulfill(); }
  void renew(tls::credential_ptr credential) { credential_ = std::move(credential); }
  desk& the_desk() { return desk_; }

 private:
  using number = connection_book::number;

  kj::Promise<void> accept_all(gate& g) {
    for (;;) {
      const int fd = accept4(g.socket.fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
      if (fd >= 0) {
        // Whatever goes wrong while one begins ends that one: the listener goes on.
        kj::runCatchingExceptions([&] { admit(g, kj::AutoCloseFd(fd)); });
        continue;
      }
      if (errno == EAGAIN || errno == EWOULDBLOCK) {
        return g.acceptable->readable().then([this, &g] { return accept_all(g); });
      }
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
        return loop_.delay(k_accept_pause).then([this, &g] { return accept_all(g); });
      }
      // What is left concerns the one connection that went away before it was taken.
    }
  }

  void admit(gate& g, kj::AutoCloseFd fd) {
    const auto [id, leaves] = g.book.admit(monotonic_now());
    auto ends = kj::defer([&g, id = id] {
      g.book.gone(id);
      g.leave.erase(id);
    });
    if (leaves) make_leave(g, *leaves, desk_.counters().connections_yielded);
    auto leave = kj::newPromiseAndFulfiller<void>();
    g.leave.emplace(id, kj::mv(leave.fulfiller));
    auto work = g.kind == link_kind::tls
                    ? prove(g, id, kj::mv(fd))
                    : talk(g, id, client::clear_channel(fd.release()), {.by = g.kind});
    tasks_.add(work.exclusiveJoin(kj::mv(leave.promise)).attach(kj::mv(ends)));
  }

  // Nothing is held for a connection that has not said a byte but its descriptor.
  kj::Promise<void> prove(gate& g, number id, kj::AutoCloseFd fd) {
    auto ready = loop_.observe(fd.get());
    auto first_byte = ready->readable();
    return first_byte.attach(kj::mv(ready))
        .then([this, &g, id, socket = kj::mv(fd)]() mutable -> kj::Promise<void> {
          auto channel = client::tls_channel::accept(*credential_, socket.release());
          auto& c = *channel;
          return c.shake_hands(loop_).then(
              [this, &g, id, taken = std::move(channel)](bool proved) mutable -> kj::Promise<void> {
                if (!proved) return refuse(*taken);
                caller who{.by = link_kind::tls, .name = taken->peer_name()};
                who.administrator = std::find(administrators_.begin(), administrators_.end(),
                                              who.name) != administrators_.end();
                return talk(g, id, std::move(taken), std::move(who));
              });
        });
  }

  // No text before authentication: it is counted and closed.
  kj::Promise<void> refuse(const client::tls_channel& channel) {
    const tls::refusal why = channel.why();
    add_one(desk_.counters().handshakes_refused[static_cast<std::size_t>(why)]);
    rpc_notice notice;
    notice.what = rpc_notice::kind::handshake_refused;
    notice.peer = peer_text(channel.fd());
    notice.handshake = tls::name_of(why);
    desk_.tell(notice);
    return kj::READY_NOW;
  }

  kj::Promise<void> talk(gate& g, number id, std::unique_ptr<client::byte_channel> channel,
                         caller who) {
    auto connection = kj::heap<client_connection>(
        desk_, std::move(channel), who, [this, &g, id, name = who.name] {
          const auto [welcome, leaves] = g.book.heard(id, name, monotonic_now());
          if (leaves) make_leave(g, *leaves, desk_.counters().connections_yielded);
          if (!welcome) add_one(desk_.counters().connections_refused);
          return welcome;
        });
    auto gone = connection->on_disconnect();
    return gone.attach(kj::mv(connection));
  }

  kj::Promise<void> sweep() {
    return loop_.delay(k_sweep_interval).then([this] {
      auto& counters = desk_.counters();
      for (auto& g : gates_) {
        for (const auto& [id, proven] : g->book.late(monotonic_now())) {
          make_leave(*g, id, proven ? counters.connections_silent : counters.connections_late);
        }
      }
      return sweep();
    });
  }

  void make_leave(gate& g, number id, std::atomic<std::uint64_t>& counter) {
    const auto at = g.leave.find(id);
    // One that was told is gone at the loop's next turn.
    if (at == g.leave.end() || !at->second->isWaiting()) return;
    add_one(counter);
    at->second->fulfill();
  }

  // A connection that ends by a failure is dropped like one that ends well.
  void taskFailed(kj::Exception&&) override {}

  desk desk_;  // before the loop: calls that still run end with the loop and leave the desk then
  client::rpc_loop loop_;
  tls::credential_ptr credential_;
  const std::vector<std::string> administrators_;
  std::vector<std::unique_ptr<gate>> gates_;
  kj::Own<kj::PromiseFulfiller<void>> stop_;
  kj::TaskSet tasks_;  // last: the connections go first
};

rpc_server::rpc_server(control_port& port, gateway* thin, rpc_options options)
    : port_(port), gateway_(thin), options_(std::move(options)) {}

rpc_server::~rpc_server() { stop(); }

expected<std::uint16_t> rpc_server::start(std::string_view listen) {
  const bool tls = options_.credential != nullptr;
  auto clients = listening_socket::tcp(listen, tls || options_.insecure);
  if (!clients) return unexpected_error(clients.error());
  const std::uint16_t port = clients->port();
  std::vector<std::unique_ptr<gate>> gates;
  gates.push_back(std::make_unique<gate>(
      std::move(*clients), tls ? link_kind::tls : link_kind::clear, k_client_connections));
  if (!options_.admin_socket.empty()) {
    auto local = listening_socket::local(options_.admin_socket);
    if (!local) return unexpected_error(local.error());
    gates.push_back(
        std::make_unique<gate>(std::move(*local), link_kind::local_socket, k_admin_connections));
  }

  const std::lock_guard lock(mutex_);
  MOETIER_ASSERT(!thread_.joinable());
  std::promise<running*> started;
  auto up = started.get_future();
  thread_ = std::thread([this, &started, taken = std::move(gates)]() mutable {
    pthread_setname_np(pthread_self(), "moetier-rpc");
    running server(port_, gateway_, counters_, options_, std::move(taken));
    server.serve(started);
  });
  running_ = up.get();
  // What was published between the server's first look and now, when the sink had nowhere to go.
  running_->post([this, server = running_] {
    if (const auto view = port_.view()) server->the_desk().take_snapshot(view->snapshot);
  });
  return port;
}

void rpc_server::renew(tls::credential_ptr credential) {
  MOETIER_ASSERT(options_.credential != nullptr && credential != nullptr);
  hand_over([credential = std::move(credential)](running& server) { server.renew(credential); });
}

bool rpc_server::drain(duration_ns limit) {
  auto done = std::make_shared<std::promise<void>>();
  auto drained = done->get_future();
  hand_over([done](running& server) { server.the_desk().drain([done] { done->set_value(); }); });
  return drained.wait_for(std::chrono::nanoseconds(limit)) == std::future_status::ready;
}

void rpc_server::stop() {
  std::thread ended;
  {
    const std::lock_guard lock(mutex_);
    if (running_ == nullptr) return;
    running* const server = std::exchange(running_, nullptr);
    server->post([server] { server->stop(); });
    ended = std::move(thread_);
  }
  ended.join();  // outside the lock: the core may be handing something over
}

rpc_counters rpc_server::counters() const noexcept {
  const auto read = [](const std::atomic<std::uint64_t>& c) {
    return c.load(std::memory_order_relaxed);
  };
  rpc_counters now{.connections_total = read(counters_.connections_total),
                   .connections_open = read(counters_.connections_open),
                   .connections_refused = read(counters_.connections_refused),
                   .connections_yielded = read(counters_.connections_yielded),
                   .connections_late = read(counters_.connections_late),
                   .connections_silent = read(counters_.connections_silent),
                   .handshakes_refused = {},
                   .frames_malformed = read(counters_.frames_malformed),
                   .connections_overrun = read(counters_.connections_overrun),
                   .calls_total = read(counters_.calls_total),
                   .calls_refused = read(counters_.calls_refused),
                   .calls_denied = read(counters_.calls_denied),
                   .calls_overloaded = read(counters_.calls_overloaded)};
  for (std::size_t i = 0; i < tls::k_refusals; ++i) {
    now.handshakes_refused[i] = read(counters_.handshakes_refused[i]);
  }
  return now;
}

void rpc_server::hand_over(std::function<void(running&)> job) {
  const std::lock_guard lock(mutex_);
  if (running_ == nullptr) return;
  running_->post([server = running_, job = std::move(job)] { job(*server); });
}

void rpc_server::on_answer(const answer_session& answer) {
  hand_over([answer](running& server) { server.the_desk().take(answer); });
}
void rpc_server::on_answer(const answer_done& answer) {
  hand_over([answer](running& server) { server.the_desk().take(answer); });
}
void rpc_server::on_snapshot(const transport::snapshot_ptr& snapshot) {
  hand_over([snapshot](running& server) { server.the_desk().take_snapshot(snapshot); });
}
void rpc_server::on_suspicion(const transport::suspicion_ptr& suspicion) {
  hand_over([suspicion](running& server) { server.the_desk().take_suspicion(suspicion); });
}
void rpc_server::on_session_ended(const session_ended& ended) {
  hand_over([ended](running& server) { server.the_desk().take_ended(ended); });
}

}  // namespace moetier::coordinator
