#include "actors/control/worker_host.hpp"

#include <atomic>
#include <chrono>
#include <random>
#include <set>

#include <caf/actor_system.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/send.hpp>

#include "actors/control/actor_link.hpp"
#include "actors/control/envelope.hpp"
#include "schemas/control/codec.hpp"

namespace moetier::actors {

// An event of this process, on its way to the actor. Never coded: it cannot leave the process and
// none can come in.
struct posted_worker_event {
  std::shared_ptr<const workers::event> what;
};

}  // namespace moetier::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(moetier::actors::posted_worker_event)

namespace moetier::actors {
namespace {

using caf::tick_atom;
using connect_again = caf::atom_constant<caf::atom("again")>;
using std::chrono::milliseconds;

constexpr milliseconds k_connect_limit{2000};
constexpr unsigned k_jitter_ms = 100;
constexpr duration_ns k_unreached_every = 10 * k_second;
// CAF refuses a new handshake while it holds the stale link, which ends with its timeout of 1 s.
constexpr milliseconds k_after_silence{1100};

struct shared_part {
  worker_shell shell;
  config::endpoint coordinator;
  duration_ns tick;
  duration_ns silence;  // longer than this without a word before a loss = not a seen close
};

class expert_worker_actor final : public caf::event_based_actor, public coordinator_link {
 public:
  expert_worker_actor(caf::actor_config& cfg, std::shared_ptr<shared_part> shared,
                      std::uint64_t seed, event_log* log)
      : caf::event_based_actor(cfg), shared_(std::move(shared)), random_(seed), log_(*log) {
    set_down_handler([this](const caf::down_msg& m) {
      guarded([&] {
        if (peer_ && caf::actor_cast<caf::actor_addr>(peer_) == m.source) lose("link lost");
      });
    });
    set_default_handler(caf::drop);
    set_exception_handler([this](std::exception_ptr&) -> caf::error {
      log_.error("worker_actor_failed");
      return caf::exit_reason::unhandled_exception;
    });
  }

  const char* name() const override { return "expert_worker"; }

  caf::behavior make_behavior() override {
    return {
        [this](const posted_worker_event& e) {
          guarded([&] { shared_->shell.handle(*e.what, *this); });
        },
        [this](const envelope& e) { guarded([&] { receive(e); }); },
        [this](tick_atom) {
          delayed_send(this, std::chrono::nanoseconds(shared_->tick), tick_atom::value);
          guarded([&] { shared_->shell.tick(*this); });
        },
        [this](connect_again) { connect(); },
    };
  }

  void send(const control::message& body) override {
    if (!peer_) return;
    for (control::frame& f : control::encode(body)) say(k_frame, std::move(f));
  }

  void drop() override {
    if (!peer_) return;
    say(k_link_close, {});
    forget();
    connect_in(k_after_silence);
  }

 private:
  template <class Act>
  void guarded(Act act) {
    try {
      act();
    } catch (const std::exception& e) {
      log_.error("worker_handler_failed", {{"why", e.what()}});
    }
  }

  void say(std::uint32_t kind, std::vector<unsigned char> bytes) {
    caf::event_based_actor::send(caf::actor_cast<caf::actor>(peer_),
                                 envelope{kind, std::move(bytes)});
  }

  void connect() {
    if (peer_ || connecting_) return;
    connecting_ = true;
    // Asynchronous and limited: the synchronous call blocks for ever on a stopped peer.
    request(connector(system()), k_connect_limit, caf::connect_atom::value,
            shared_->coordinator.host, shared_->coordinator.port)
        .then(
            [this](const caf::node_id& node, caf::strong_actor_ptr& peer,
                   const std::set<std::string>&) {
              connecting_ = false;
              guarded([&] { linked(node, std::move(peer)); });
            },
            [this](caf::error& why) {
              connecting_ = false;
              log_.debug("connect_failed", {{"why", system().render(why)}});
              tell_unreached();
              connect_in(why == caf::sec::request_timeout ? k_after_silence : jitter());
            });
  }

  // The first failure at once, then what it has come to, from time to time.
  void tell_unreached() {
    const time_ns now = monotonic_now();
    if (failures_++ == 0) unreached_since_ = now;
    if (failures_ > 1 && now - unreached_told_ < k_unreached_every) return;
    unreached_told_ = now;
    log_.warn(
        "coordinator_unreached",
        {{"coordinator", config::endpoint_text(shared_->coordinator)},
         {"attempts", failures_},
         {"for_ms", (now - unreached_since_) / k_millisecond},
         {"remedy", "start the coordinator, or set worker.coordinator to its control address"}});
  }

  void linked(const caf::node_id& node, caf::strong_actor_ptr peer) {
    if (node == system().node()) {
      log_.error("same_node_identity",
                 {{"remedy", "give each container its own root UUID line in /etc/fstab"}});
      return connect_in(k_after_silence);
    }
    if (!peer) return connect_in(k_after_silence);
    peer_ = std::move(peer);
    inbox_ = {};
    heard_at_ = monotonic_now();
    monitor(peer_);
    say(k_link_open, {});
    failures_ = 0;
    log_.info("linked", {{"coordinator", config::endpoint_text(shared_->coordinator)}});
    shared_->shell.handle(workers::link_up{}, *this);
  }

  void receive(const envelope& e) {
    if (!peer_ || current_sender() != peer_) return;  // a late word of an earlier link
    heard_at_ = monotonic_now();
    if (e.kind == k_link_close) return lose("link closed by the coordinator");
    if (e.kind != k_frame) {
      log_.warn("envelope_of_unknown_kind", {{"kind", std::uint64_t{e.kind}}});
      return;
    }
    auto message = inbox_.accept(e.bytes);
    if (!message) {
      log_.warn("frame_refused", {{"why", message.error().text}});
      say(k_link_close, {});
      lose("malformed frame");
    } else if (*message) {
      shared_->shell.handle(workers::coordinator_message{std::move(**message)}, *this);
    }
  }

  void forget() {
    demonitor(caf::actor_cast<caf::actor_addr>(peer_));
    peer_ = nullptr;
  }

  void lose(std::string_view why) {
    const bool silent = monotonic_now() - heard_at_ > shared_->silence;
    log_.warn("link_lost", {{"why", why}, {"silent", silent ? "yes" : "no"}});
    forget();
    shared_->shell.handle(workers::link_lost{}, *this);
    connect_in(silent ? k_after_silence : jitter());
  }

  milliseconds jitter() {
    return milliseconds(std::uniform_int_distribution<unsigned>(1, k_jitter_ms)(random_));
  }

  void connect_in(milliseconds delay) { delayed_send(this, delay, connect_again::value); }

  std::shared_ptr<shared_part> shared_;
  std::mt19937_64 random_;
  event_log& log_;
  caf::strong_actor_ptr peer_;  // the coordinator's actor; null = no link
  control::assembler inbox_;
  time_ns heard_at_ = 0;
  bool connecting_ = false;
  // Since the last link: how often connecting failed, since when, and when that was told last.
  std::uint64_t failures_ = 0;
  time_ns unreached_since_ = 0;
  time_ns unreached_told_ = 0;
};

}  // namespace

struct worker_host::state {
  caf::actor_system& system;
  std::shared_ptr<shared_part> shared;
  caf::actor actor;
};

worker_host::worker_host(actor_world& world, const config::endpoint& coordinator,
                         workers::core_options options, std::uint64_t seed,
                         worker_machinery& machinery, event_log& log) {
  const duration_ns tick = options.heartbeat_interval / 2;
  const duration_ns silence = options.heartbeat_timeout;
  auto shared = std::shared_ptr<shared_part>(new shared_part{
      worker_shell(std::move(options), machinery, log), coordinator, tick, silence});
  if (shared->coordinator.host == "localhost") shared->coordinator.host = "127.0.0.1";
  caf::actor actor = world.system().spawn<expert_worker_actor>(shared, seed, &log);
  state_ = std::unique_ptr<state>(new state{world.system(), std::move(shared), std::move(actor)});
}

worker_host::~worker_host() { stop(); }

void worker_host::stop() {
  caf::scoped_actor self(state_->system);
  self->send_exit(state_->actor, caf::exit_reason::user_shutdown);
  self->wait_for(state_->actor);
}

void worker_host::start() {
  caf::anon_send(state_->actor, connect_again::value);
  caf::anon_send(state_->actor, tick_atom::value);
}

void worker_host::post(workers::event what) {
  caf::anon_send(state_->actor,
                 posted_worker_event{std::make_shared<const workers::event>(std::move(what))});
}

workers::worker_summary worker_host::summary() const { return state_->shared->shell.summary(); }

}  // namespace moetier::actors
