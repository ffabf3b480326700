#include "coordinator/rpc/rpc_server.hpp"

#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <future>
#include <utility>

#include <fmt/format.h>

#include "coordinator/rpc/client_connection.hpp"
#include "coordinator/rpc/limits.hpp"
#include "schemas/base/assert.hpp"
#include "transport/client/link/socket_address.hpp"

namespace moetier::coordinator {
namespace {

expected<int> bind_socket(const client::socket_address& address, std::string_view listen_text) {
  const int fd = socket(address.bytes.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  const int on = 1;
  // A restarted coordinator must not wait for the old one's closed connections to be forgotten.
  if (fd >= 0) setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (fd >= 0 && bind(fd, address.get(), address.length) == 0 && listen(fd, SOMAXCONN) == 0) {
    return fd;
  }
  const int error = errno;
  if (fd >= 0) close(fd);
  if (error == EADDRINUSE) {
    return fail(reason::address_in_use, fmt::format("RPC {}", listen_text));
  }
  return fail(reason::config_invalid, "rpc.listen", listen_text, "an address of this machine");
}

}  // namespace

// What lives on the server's thread: the loop, the desk, the listening socket, the connections.
class rpc_server::running final : private kj::TaskSet::ErrorHandler {
 public:
  running(control_port& port, gateway* thin, live_counters& counters, int listen_fd)
      : desk_(loop_, port, thin, counters), listen_fd_(listen_fd), tasks_(*this) {
    // Before the first client is let in.
    if (const auto view = port.view()) desk_.take_snapshot(view->snapshot);
  }
  ~running() noexcept(false) { close(listen_fd_); }
  KJ_DISALLOW_COPY(running);

  void serve(std::promise<running*>& started) {
    auto stop = kj::newPromiseAndFulfiller<void>();
    stop_ = kj::mv(stop.fulfiller);
    acceptable_ = loop_.observe(listen_fd_);
    tasks_.add(accept_all());
    started.set_value(this);
    loop_.run(kj::mv(stop.promise));
    acceptable_ = nullptr;
  }

  void post(std::function<void()> job) { loop_.post(std::move(job)); }
  void stop() { stop_->fulfill(); }
  desk& the_desk() { return desk_; }

 private:
  kj::Promise<void> accept_all() {
    for (;;) {
      const int fd = accept4(listen_fd_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
      if (fd >= 0) {
        admit(fd);
        continue;
      }
      if (errno == EAGAIN || errno == EWOULDBLOCK) {
        return acceptable_->readable().then([this] { return accept_all(); });
      }
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
        return loop_.delay(k_accept_pause).then([this] { return accept_all(); });
      }
      // What is left concerns the one connection that went away before it was taken.
    }
  }

  void admit(int fd) {
    live_counters& counters = desk_.counters();
    if (counters.connections_open.load(std::memory_order_relaxed) >= k_connections_max) {
      counters.connections_refused.fetch_add(1, std::memory_order_relaxed);
      close(fd);
      return;
    }
    auto connection = kj::heap<client_connection>(desk_, fd);
    auto gone = connection->on_disconnect();
    tasks_.add(gone.attach(kj::mv(connection)));
  }

  // A connection that ends by a failure is dropped like one that ends well.
  void taskFailed(kj::Exception&&) override {}

  desk desk_;  // before the loop: calls that still run end with the loop and leave the desk then
  client::rpc_loop loop_;
  const int listen_fd_;
  kj::Own<client::fd_readiness> acceptable_;
  kj::Own<kj::PromiseFulfiller<void>> stop_;
  kj::TaskSet tasks_;  // last: the connections go first
};

rpc_server::rpc_server(control_port& port, gateway* thin, tls_files tls)
    : port_(port), gateway_(thin), tls_(std::move(tls)) {}

rpc_server::~rpc_server() { stop(); }

expected<std::uint16_t> rpc_server::start(std::string_view listen) {
  if (!tls_.empty()) return fail(reason::not_enabled, "TLS on the RPC address");
  const auto addresses = client::parse_address("rpc.listen", listen);
  if (!addresses) return unexpected_error(addresses.error());
  const client::socket_address& address = addresses->front();
  if (!address.is_loopback()) {
    return fail(reason::config_invalid, "rpc.listen", listen,
                "a loopback address while there are no certificates");
  }
  const auto fd = bind_socket(address, listen);
  if (!fd) return unexpected_error(fd.error());
  client::socket_address bound;
  bound.length = sizeof bound.bytes;
  getsockname(*fd, bound.get(), &bound.length);

  const std::lock_guard lock(mutex_);
  MOETIER_ASSERT(!thread_.joinable());
  std::promise<running*> started;
  auto up = started.get_future();
  thread_ = std::thread([this, &started, fd = *fd] {
    pthread_setname_np(pthread_self(), "moetier-rpc");
    running server(port_, gateway_, counters_, fd);
    server.serve(started);
  });
  running_ = up.get();
  // What was published between the server's first look and now, when the sink had nowhere to go.
  running_->post([this, server = running_] {
    if (const auto view = port_.view()) server->the_desk().take_snapshot(view->snapshot);
  });
  return bound.port();
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
  return {.connections_total = read(counters_.connections_total),
          .connections_open = read(counters_.connections_open),
          .connections_refused = read(counters_.connections_refused),
          .frames_malformed = read(counters_.frames_malformed),
          .connections_overrun = read(counters_.connections_overrun),
          .calls_total = read(counters_.calls_total),
          .calls_refused = read(counters_.calls_refused),
          .calls_overloaded = read(counters_.calls_overloaded)};
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
