#include "transport/client/link/tier_link.hpp"

#include <pthread.h>
#include <signal.h>
#include <sys/random.h>

#include <atomic>
#include <exception>
#include <future>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "schemas/base/mix.hpp"
#include "schemas/base/no_credit.hpp"
#include "transport/client/link/contact.hpp"
#include "transport/client/link/rows_codec.hpp"

namespace moetier::client {
namespace {

std::uint64_t random_bits() {
  std::uint64_t bits = 0;
  if (getrandom(&bits, sizeof bits, 0) != sizeof bits) bits = mix(monotonic_now());
  return bits;
}

// The host's signals are its own: a thread that is started meanwhile has all of them blocked.
class all_signals_blocked final {
 public:
  all_signals_blocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~all_signals_blocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  all_signals_blocked(const all_signals_blocked&) = delete;

 private:
  sigset_t before_;
};

// What lives on the loop's thread.
struct loop_side {
  loop_side(link_news& news, std::vector<socket_address> addresses, first_contact first,
            std::optional<dialer> tls)
      : reached(loop, news, std::move(addresses), random_bits(), first, std::move(tls)) {}

  rpc_loop loop;
  kj::PromiseFulfillerPair<void> stop = kj::newPromiseAndFulfiller<void>();
  contact reached;
};

// The caller's side: starts the loop's thread, hands calls over, waits for their ends.
class link final : public tier_link {
 public:
  ~link() noexcept override {
    if (!thread_.joinable()) return;
    side_->loop.post([this] { side_->stop.fulfiller->fulfill(); });
    thread_.join();
  }

  // Called once, before all else.
  expected<void> start(std::vector<socket_address> addresses, first_contact first,
                       std::optional<dialer> tls) {
    std::promise<expected<void>> started;
    auto up = started.get_future();
    try {
      const all_signals_blocked quiet;
      thread_ = std::thread(
          [this, first, a = std::move(addresses), t = std::move(tls),
           s = std::move(started)]() mutable { serve(std::move(a), first, std::move(t), s); });
    } catch (const std::system_error&) {
      return fail(reason::coordinator_unreached, "out of threads");
    }
    auto done = up.get();
    if (!done) thread_.join();
    return done;
  }

  expected<void> connected(duration_ns limit) {
    return ask<void>([=](contact& c) { return c.connected(limit); });
  }

  expected<transport::snapshot_ptr> snapshot(duration_ns limit) override {
    return ask<transport::snapshot_ptr>([=](contact& c) { return c.snapshot(limit); });
  }
  expected<session_granted> open_session(const session_wish& wish, duration_ns limit) override {
    return ask<session_granted>([&wish, limit](contact& c) { return c.open(wish, limit); });
  }
  expected<void> attach(session_id session, const transport::source_shape& shape,
                        const transport::member_address& address, duration_ns limit) override {
    return ask<void>(
        [&, session, limit](contact& c) { return c.attach(session, shape, address, limit); });
  }
  expected<void> close_session(session_id session, duration_ns limit) override {
    return ask<void>([=](contact& c) { return c.close(session, limit); });
  }
  expected<thin_result> forward(session_id session, const thin_call& call) override {
    return ask<thin_result>([&call, session](contact& c) { return c.forward(session, call); });
  }
  expected<layer_router_ptr> router(layer_id layer, duration_ns limit) override {
    const time_ns end = monotonic_now() + limit;
    auto whole = std::make_shared<layer_router>();
    for (std::uint32_t next = 0; next == 0 || next < whole->columns;) {
      const time_ns now = monotonic_now();
      auto piece = ask<contact::router_rows>(
          [=](contact& c) { return c.router(layer, next, now < end ? end - now : 1); });
      if (!piece) return unexpected_error(piece.error());
      if (auto joined = join(*whole, std::move(piece->part), next); !joined)
        return unexpected_error(joined.error());
    }
    return layer_router_ptr(std::move(whole));
  }
  expected<std::string> document(admin_document which, duration_ns limit) override {
    return ask<std::string>([=](contact& c) { return c.document(which, limit); });
  }
  expected<std::string> load_adapter(const std::string& name, const std::string& path,
                                     duration_ns limit) override {
    return ask<std::string>([=](contact& c) { return c.load_adapter(name, path, limit); });
  }
  expected<std::string> drop_adapter(const std::string& name, duration_ns limit) override {
    return ask<std::string>([=](contact& c) { return c.drop_adapter(name, limit); });
  }

  expected<void> set_log_level(const std::string& level, duration_ns limit) override {
    return ask<void>([=](contact& c) { return c.set_log_level(level, limit); });
  }

  transport::snapshot_ptr wait_newer(session_id session, const transport::routing_snapshot& seen,
                                     duration_ns limit) override {
    return news_.wait_newer(session, seen, limit);
  }
  transport::snapshot_ptr newest() const override { return news_.snapshots.newest(); }
  transport::suspicion_ptr suspicion() const override { return news_.snapshots.suspicion(); }
  void report_late(session_id session, worker_id worker, incarnation_id incarnation) override {
    side_->loop.post([=, this] { side_->reached.report_late(session, worker, incarnation); });
  }
  bool session_lost(session_id session) const override { return news_.session_lost(session); }
  void on_event(std::function<void(link_event, session_id)> sink) override {
    news_.sink(std::move(sink));
  }

 private:
  // Runs `call` on the loop and waits for its end. No limit of its own: the loop ends every call by
  // the call's limit, its thread serves nothing else, and what the call refers to is the caller's.
  template <class T, class Call>
  expected<T> ask(Call call) {
    if (outstanding_.fetch_add(1) >= k_requests_per_link_max) {
      outstanding_.fetch_sub(1);
      return no_credit("too many calls of one link are outstanding", 10 * k_millisecond);
    }
    auto ended = std::make_shared<std::promise<expected<T>>>();
    auto result = ended->get_future();
    side_->loop.post([this, call = std::move(call), ended] {
      side_->reached.add(
          call(side_->reached)
              .then([ended](expected<T> answer) { ended->set_value(std::move(answer)); },
                    [ended](kj::Exception&&) {
                      ended->set_value(fail(reason::internal_error, "the link's loop failed"));
                    }));
    });
    result.wait();
    outstanding_.fetch_sub(1);
    return result.get();
  }

  void serve(std::vector<socket_address> addresses, first_contact first, std::optional<dialer> tls,
             std::promise<expected<void>>& started) {
    pthread_setname_np(pthread_self(), "moetier-link");
    std::optional<loop_side> made;
    try {
      made.emplace(news_, std::move(addresses), first, std::move(tls));
    } catch (const std::exception&) {  // KJ's are such, too
      return started.set_value(
          fail(reason::coordinator_unreached, "out of file descriptors or memory"));
    }
    side_ = &*made;
    started.set_value({});
    made->loop.run(kj::mv(made->stop.promise));
  }

  link_news news_;
  std::atomic<std::size_t> outstanding_{0};
  std::thread thread_;
  loop_side* side_ = nullptr;  // lives on thread_
};

}  // namespace

expected<std::unique_ptr<tier_link>> connect(std::string_view address, duration_ns limit,
                                             const link_options& options) {
  auto addresses = parse_address("address", address);
  if (!addresses) return unexpected_error(addresses.error());
  std::optional<dialer> tls;
  if (options.tls) {
    if (addresses->front().is_unix()) {
      return fail(reason::invalid_argument, "tls", "given",
                  "none with an address unix:PATH, which never leaves the machine");
    }
    auto made = dialer::make(*options.tls, std::string(host_of(address)));
    if (!made) return unexpected_error(made.error());
    tls = std::move(*made);
  }
  auto made = std::make_unique<link>();
  if (auto ok = made->start(std::move(*addresses), options.first, std::move(tls)); !ok) {
    return unexpected_error(ok.error());
  }
  if (const auto up = made->connected(limit); !up) return unexpected_error(up.error());
  return made;
}

}  // namespace moetier::client
