#include "coordinator/rpc/client_connection.hpp"

#include <capnp/rpc.capnp.h>
#include <kj/debug.h>

#include "coordinator/rpc/limits.hpp"
#include "coordinator/rpc/tier_service.hpp"
#include "transport/client/link/connection.hpp"

namespace moetier::coordinator {

class client_connection::gate final : public capnp::MessageStream {
 public:
  gate(capnp::MessageStream& inner, std::function<bool()> heard)
      : inner_(inner), heard_(std::move(heard)) {}

  void watch(capnp::TwoPartyVatNetwork& network) { network_ = &network; }
  bool overrun() const { return overrun_; }

  kj::Promise<kj::Maybe<capnp::MessageReaderAndFds>> tryReadMessage(
      kj::ArrayPtr<kj::AutoCloseFd> fds, capnp::ReaderOptions options,
      kj::ArrayPtr<capnp::word> scratch) override {
    return inner_.tryReadMessage(fds, options, scratch)
        .then([this](kj::Maybe<capnp::MessageReaderAndFds>&& message) {
          KJ_IF_MAYBE (m, message) {
            KJ_REQUIRE(heard_(), "no room for this connection");
            count(*m->reader);
          }
          return kj::mv(message);
        });
  }
  kj::Promise<void> writeMessage(
      kj::ArrayPtr<const int> fds,
      kj::ArrayPtr<const kj::ArrayPtr<const capnp::word>> segments) override {
    return inner_.writeMessage(fds, segments);
  }
  kj::Promise<void> writeMessages(
      kj::ArrayPtr<kj::ArrayPtr<const kj::ArrayPtr<const capnp::word>>> messages) override {
    return inner_.writeMessages(messages);
  }
  kj::Maybe<int> getSendBufferSize() override { return inner_.getSendBufferSize(); }
  kj::Promise<void> end() override { return inner_.end(); }

 private:
  void count(capnp::MessageReader& message) {
    switch (message.getRoot<capnp::rpc::Message>().which()) {
      case capnp::rpc::Message::BOOTSTRAP:
      case capnp::rpc::Message::CALL: ++questions_; break;
      case capnp::rpc::Message::FINISH:
        if (questions_ > 0) --questions_;
        break;
      default: break;
    }
    if (questions_ <= client::k_questions_max &&
        network_->getCurrentQueueSize() <= k_queued_bytes_max) {
      return;
    }
    overrun_ = true;
    KJ_FAIL_REQUIRE("too many unfinished calls or unread answers");
  }

  capnp::MessageStream& inner_;
  const std::function<bool()> heard_;
  capnp::TwoPartyVatNetwork* network_ = nullptr;
  std::uint32_t questions_ = 0;
  bool overrun_ = false;
};

client_connection::client_connection(desk& d, std::unique_ptr<client::byte_channel> channel,
                                     caller who, std::function<bool()> heard)
    : desk_(d),
      account_(std::make_shared<account>()),
      stream_(d.loop(), std::move(channel)),
      gate_(kj::heap<gate>(stream_, std::move(heard))),
      network_(*gate_, capnp::rpc::twoparty::Side::SERVER, client::reader_options()),
      system_(capnp::makeRpcServer(
          network_, kj::heap<tier_service>(service_place{d, account_, std::move(who)}))) {
  gate_->watch(network_);
  auto& counters = desk_.counters();
  counters.connections_open.fetch_add(1);  // before the total: who sees the total sees it open
  counters.connections_total.fetch_add(1);
}

client_connection::~client_connection() noexcept(false) {
  account_->close();
  auto& counters = desk_.counters();
  counters.connections_open.fetch_sub(1, std::memory_order_relaxed);
  if (stream_.malformed()) counters.frames_malformed.fetch_add(1, std::memory_order_relaxed);
  if (gate_->overrun()) counters.connections_overrun.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace moetier::coordinator
