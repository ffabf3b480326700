// A link whose coordinator breaks the protocol within a message: the link connects anew, for as
// long as it lives.

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <future>
#include <string>

#include <capnp/any.h>
#include <capnp/rpc-twoparty.h>
#include <fmt/core.h>
#include <gtest/gtest.h>

#include "transport/client/link/call_status.hpp"
#include "transport/client/link/connection.hpp"
#include "transport/client/link/tier_link.hpp"

namespace moetier::client {
namespace {

constexpr duration_ns k_patience = 10 * k_second;  // for what must happen, never how long it takes

class odd_tier final : public rpc::Tier::Server {
 public:
  explicit odd_tier(bool answers_well) : answers_well_(answers_well) {}

 private:
  kj::Promise<void> info(InfoContext context) override {
    auto status = context.getResults().initStatus();
    if (answers_well_) {
      write_ok(status, 1);
      return kj::READY_NOW;
    }
    write_error(status, make_error(reason::shutting_down), 1);
    // A text that does not end, where the reader will look for one.
    const kj::byte bytes[] = {'x', 'y'};
    capnp::toAny(status).getPointerSection()[0].setAs<capnp::Data>(
        capnp::Data::Reader(bytes, sizeof bytes));
    return kj::READY_NOW;
  }
  kj::Promise<void> ping(PingContext context) override {
    write_ok(context.getResults().initStatus(), 1);
    return kj::READY_NOW;
  }

  const bool answers_well_;
};

// Serves one connection after the other: the first few badly, then well. Thread: its own.
class odd_coordinator final {
 public:
  explicit odd_coordinator(int odd) : listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in here{};
    here.sin_family = AF_INET;
    here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof here;
    EXPECT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&here), length), 0);
    EXPECT_EQ(listen(listener_, 8), 0);
    EXPECT_EQ(getsockname(listener_, reinterpret_cast<sockaddr*>(&here), &length), 0);
    port_ = ntohs(here.sin_port);
    served_ = std::async(std::launch::async, [this, odd] {
      for (int i = 0; i <= odd && serve(i == odd); ++i) {
      }
    });
  }
  ~odd_coordinator() {
    shutdown(listener_, SHUT_RDWR);  // nobody is waited for any more
    served_.wait();
    close(listener_);
  }
  odd_coordinator(const odd_coordinator&) = delete;

  std::string address() const { return fmt::format("127.0.0.1:{}", port_); }

 private:
  // Until the other side ends it; false if nobody came.
  bool serve(bool well) {
    pollfd comes{.fd = listener_, .events = POLLIN, .revents = 0};
    if (poll(&comes, 1, k_patience / k_millisecond) != 1) return false;
    const int fd = accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) return false;
    rpc_loop loop;
    rpc_stream stream(loop, clear_channel(fd));
    capnp::TwoPartyVatNetwork network(stream, capnp::rpc::twoparty::Side::SERVER, reader_options());
    auto system = capnp::makeRpcServer(network, kj::heap<odd_tier>(well));
    network.onDisconnect().wait(loop.scope());
    return true;
  }

  int listener_;
  std::uint16_t port_ = 0;
  std::future<void> served_;
};

TEST(odd_coordinator_test, an_answer_that_does_not_decode_costs_its_connection_alone) {
  odd_coordinator coordinator(2);
  const auto link = connect(coordinator.address(), k_patience);
  EXPECT_TRUE(link.has_value()) << link.error().text;
}

}  // namespace
}  // namespace moetier::client
