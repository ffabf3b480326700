#include "actors/control/coordinator_host.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>

#include <caf/actor_system.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/send.hpp>

#include "actors/control/actor_link.hpp"
#include "actors/control/envelope.hpp"
#include "schemas/control/codec.hpp"

namespace moetier::actors {

// The first message: from here on the core's answers have a place to go.
struct begin {
  coordinator::control_sink* sink;
};

// An event of this process, on its way to the actor. Never coded: it cannot leave the process and
// none can come in.
struct posted_event {
  std::shared_ptr<const coordinator::event> what;
};

}  // namespace moetier::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(moetier::actors::begin)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(moetier::actors::posted_event)

namespace moetier::actors {
namespace {

using caf::tick_atom;
using coordinator::link_number;

constexpr std::size_t k_links_max = 4 * std::size_t{k_workers_max};

struct shared_part {
  coordinator_shell shell;
  std::atomic<std::uint64_t> depth{0};
};

class coordinator_actor final : public caf::event_based_actor, public worker_links {
 public:
  coordinator_actor(caf::actor_config& cfg, std::shared_ptr<shared_part> shared,
                    std::chrono::nanoseconds tick, event_log* log)
      : caf::event_based_actor(cfg), shared_(std::move(shared)), tick_(tick), log_(*log) {
    set_down_handler([this](const caf::down_msg& m) { guarded([&] { lose(m.source); }); });
    // Nothing is published before begin, and nobody posts: what comes early is nobody's.
    set_default_handler(caf::drop);
    set_exception_handler([this](std::exception_ptr&) -> caf::error {
      log_.error("coordinator_actor_failed");
      return caf::exit_reason::unhandled_exception;
    });
  }

  const char* name() const override { return "coordinator"; }

  caf::behavior make_behavior() override {
    return {[this](const begin& b) {
      become(serving());
      guarded([&] { shared_->shell.start(*b.sink, *this); });
      delayed_send(this, tick_, tick_atom::value);
    }};
  }

  caf::behavior serving() {
    return {
        [this](const posted_event& e) {
          shared_->depth.fetch_sub(1, std::memory_order_relaxed);
          guarded([&] { shared_->shell.handle(*e.what, *this); });
        },
        [this](const envelope& e) { guarded([&] { receive(e); }); },
        [this](tick_atom) {
          delayed_send(this, tick_, tick_atom::value);
          guarded([&] { shared_->shell.handle(coordinator::time_passed{}, *this); });
        },
    };
  }

  void send(link_number link, const control::message& body) override {
    const auto at = links_.find(link);
    if (at == links_.end()) return;
    for (control::frame& f : control::encode(body)) say(at->second.peer, k_frame, std::move(f));
  }

  void cut(link_number link) override {
    const auto at = links_.find(link);
    if (at == links_.end()) return;
    say(at->second.peer, k_link_close, {});
    forget(at);
  }

 private:
  struct link_state {
    caf::strong_actor_ptr peer;  // strong: an actor that nobody holds vanishes in silence
    control::assembler inbox;
  };
  using link_map = std::map<link_number, link_state>;

  template <class Act>
  void guarded(Act act) {
    try {
      act();
    } catch (const std::exception& e) {
      log_.error("coordinator_handler_failed", {{"why", e.what()}});
    }
  }

  void say(const caf::strong_actor_ptr& to, std::uint32_t kind, std::vector<unsigned char> bytes) {
    caf::event_based_actor::send(caf::actor_cast<caf::actor>(to), envelope{kind, std::move(bytes)});
  }

  link_map::iterator find(const caf::actor_addr& peer) {
    return std::find_if(links_.begin(), links_.end(), [&](const auto& l) {
      return caf::actor_cast<caf::actor_addr>(l.second.peer) == peer;
    });
  }

  void forget(link_map::iterator at) {
    demonitor(caf::actor_cast<caf::actor_addr>(at->second.peer));
    links_.erase(at);
  }

  void lose(const caf::actor_addr& peer) {
    const auto at = find(peer);
    if (at != links_.end()) end(at);
  }

  void end(link_map::iterator at) {
    const link_number gone = at->first;
    forget(at);
    shared_->shell.handle(coordinator::worker_link_lost{gone}, *this);
  }

  void receive(const envelope& e) {
    const caf::strong_actor_ptr peer = current_sender();
    // Only a remote actor is a worker, and one that cannot be answered is none.
    if (!peer || peer->node() == system().node()) return;
    auto at = find(caf::actor_cast<caf::actor_addr>(peer));
    switch (e.kind) {
      case k_link_open:
        if (at != links_.end()) end(at);
        open(peer);
        break;
      case k_link_close:
        if (at != links_.end()) end(at);
        break;
      case k_frame:
        if (at != links_.end()) take_frame(at, e.bytes);
        break;
      default: log_.warn("envelope_of_unknown_kind", {{"kind", std::uint64_t{e.kind}}});
    }
  }

  void open(const caf::strong_actor_ptr& peer) {
    if (links_.size() >= k_links_max) {
      log_.warn("too_many_links", {{"links", links_.size()}});
      say(peer, k_link_close, {});
      return;
    }
    monitor(peer);
    links_.emplace(++last_link_, link_state{peer, {}});
  }

  void take_frame(link_map::iterator at, const std::vector<unsigned char>& bytes) {
    const link_number link = at->first;
    auto message = at->second.inbox.accept(bytes);
    if (!message) {
      log_.warn("frame_refused", {{"link", link}, {"why", message.error().text}});
      say(at->second.peer, k_link_close, {});
      end(at);
    } else if (*message) {
      shared_->shell.handle(coordinator::worker_message{link, std::move(**message)}, *this);
    }
  }

  std::shared_ptr<shared_part> shared_;
  std::chrono::nanoseconds tick_;
  event_log& log_;
  link_map links_;
  link_number last_link_ = 0;
};

}  // namespace

struct coordinator_host::state {
  caf::actor_system& system;
  std::shared_ptr<shared_part> shared;
  caf::actor actor;
  client::router_source router;
  std::uint16_t published = 0;
};

coordinator_host::coordinator_host(actor_world& world, coordinator::core_options options,
                                   std::optional<coordinator::record> stored,
                                   coordinator_world shell_world, event_log& log) {
  // A look every quarter of a beat: silence is judged at most that much later than it could be.
  const std::chrono::nanoseconds tick(options.heartbeat_interval / 4);
  client::router_source router = shell_world.router;
  auto shared = std::shared_ptr<shared_part>(new shared_part{
      coordinator_shell(std::move(options), std::move(stored), std::move(shell_world), log), {}});
  caf::actor actor = world.system().spawn<coordinator_actor>(shared, tick, &log);
  state_ = std::unique_ptr<state>(
      new state{world.system(), std::move(shared), std::move(actor), std::move(router), 0});
}

coordinator_host::~coordinator_host() {
  caf::scoped_actor self(state_->system);
  if (state_->published != 0) {
    // The port goes first: nobody new gets in while the actor ends.
    unpublish(state_->actor, state_->published);
  }
  self->send_exit(state_->actor, caf::exit_reason::user_shutdown);
  self->wait_for(state_->actor);
}

void coordinator_host::start(coordinator::control_sink& sink) {
  caf::anon_send(state_->actor, begin{&sink});
}

expected<config::endpoint> coordinator_host::publish(const config::endpoint& listen) {
  const std::string host = listen.host == "localhost" ? "127.0.0.1" : listen.host;
  const auto port = actors::publish(state_->actor, {host, listen.port});
  if (!port) return tl::unexpected(port.error());
  state_->published = *port;
  return config::endpoint{host, *port};
}

void coordinator_host::post(coordinator::event what) {
  state_->shared->depth.fetch_add(1, std::memory_order_relaxed);
  caf::anon_send(state_->actor,
                 posted_event{std::make_shared<const coordinator::event>(std::move(what))});
}

std::shared_ptr<const coordinator::tier_view> coordinator_host::view() const {
  return state_->shared->shell.view();
}

expected<client::layer_router_ptr> coordinator_host::router(std::size_t moe_index) {
  if (!state_->router) return control_port::router(moe_index);
  return state_->router(moe_index);
}

duration_ns coordinator_host::view_age() const { return state_->shared->shell.view_age(); }

std::uint64_t coordinator_host::mailbox_depth() const noexcept {
  return state_->shared->depth.load(std::memory_order_relaxed);
}

}  // namespace moetier::actors
