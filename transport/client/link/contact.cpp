#include "transport/client/link/contact.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "schemas/base/assert.hpp"
#include "schemas/base/mix.hpp"
#include "transport/client/link/call_status.hpp"
#include "transport/client/link/rows_codec.hpp"

namespace moetier::client {
namespace {

const char* words_of(int error) {
  switch (error) {
    case ECONNREFUSED: return "connection refused";
    case ETIMEDOUT: return "no answer in time";
    case EMFILE:
    case ENFILE: return "out of file descriptors";
    case ENOENT: return "there is no such socket";
    case EACCES: return "this user may not open the socket";
    default: return "no connection";
  }
}

// A later try would be told the same.
bool is_refusal(int error) { return error == ECONNREFUSED || error == ENOENT || error == EACCES; }

// What a second try would end in too, whoever has patience.
bool is_verdict(tls::refusal why) {
  return why != tls::refusal::none && why != tls::refusal::cut && why != tls::refusal::other;
}

// The coordinator's answer that ends a session, as opposed to one that asks for patience.
bool is_final(const error& e) {
  return e.code == status::session_lost || e.code == status::cancelled || !is_retryable(e.code);
}

}  // namespace

contact::contact(rpc_loop& loop, link_news& news, std::vector<socket_address> addresses,
                 std::uint64_t client, first_contact first, std::optional<dialer> tls)
    : loop_(loop),
      news_(news),
      addresses_(std::move(addresses)),
      client_(client),
      first_(first),
      tls_(std::move(tls)),
      jitter_(client),
      tasks_(*this) {
  MOETIER_ASSERT(!addresses_.empty());
  tasks_.add(keep_connected());
}

contact::~contact() noexcept(false) = default;

// ---- the connection

kj::Promise<void> contact::keep_connected() {
  return kj::evalNow([this] { return try_connect(0); })
      .then([this](bool up) { return up ? stay_connected() : give_up_or_pause(); })
      .catch_([this](kj::Exception&&) { return start_over(); })
      .then([this] { return keep_connected(); });
}

kj::Promise<void> contact::stay_connected() {
  auto lost = kj::newPromiseAndFulfiller<void>();
  lost_ = kj::mv(lost.fulfiller);
  use_connection();
  return connection_->on_disconnect().exclusiveJoin(kj::mv(lost.promise)).then([this] {
    drop_connection();
  });
}

kj::Promise<void> contact::give_up_or_pause() {
  const bool gives_up = disproved_ || (all_refused_ && first_ == first_contact::impatient);
  if (gives_up && !was_connected_) {
    hopeless_ = make_error(reason::coordinator_unreached, last_failure_);
    changed_.fire();
  }
  return pause();
}

// What nobody foresaw, an answer that does not decode or a descriptor that cannot be watched, costs
// the connection that it happened to and no later one.
kj::Promise<void> contact::start_over() {
  if (greeted_) drop_connection();
  last_failure_ = connection_.get() == nullptr ? "no connection" : "its answer breaks the protocol";
  connection_ = nullptr;
  return pause();
}

kj::Promise<void> contact::pause() {
  jitter_ = mix(jitter_);
  const duration_ns length = backoff_ / 2 + jitter_ % (backoff_ / 2 + 1);
  backoff_ = std::min(backoff_ * 2, k_backoff_max);
  return loop_.delay(length);
}

kj::Promise<bool> contact::try_connect(std::size_t index) {
  if (index == 0) {
    all_refused_ = true;
    disproved_ = false;
  }
  return connect_socket(loop_, addresses_[index], k_connect_attempt_max)
      .then([this, index](connect_result result) -> kj::Promise<bool> {
        all_refused_ = all_refused_ && result.fd < 0 && is_refusal(result.error);
        if (result.fd >= 0 && tls_) return prove(result.fd);
        if (result.fd >= 0) {
          connection_ = kj::heap<connection>(loop_, clear_channel(result.fd));
          return greet();
        }
        last_failure_ = words_of(result.error);
        if (index + 1 < addresses_.size()) return try_connect(index + 1);
        return false;
      });
}

// Who both sides are, before a word is said.
kj::Promise<bool> contact::prove(int fd) {
  auto channel = tls_->dial(fd);
  tls_channel& c = *channel;
  last_failure_ = "the TLS handshake took too long";
  return c.shake_hands(loop_)
      .then([this, &c](bool proved) {
        if (!proved) {
          last_failure_ = tls::words_of(c.why());
          disproved_ = is_verdict(c.why());
        }
        return proved;
      })
      .exclusiveJoin(loop_.delay(k_connect_attempt_max).then([] { return false; }))
      .then([this, channel = std::move(channel)](bool proved) mutable -> kj::Promise<bool> {
        if (!proved) return false;
        connection_ = kj::heap<connection>(loop_, std::move(channel));
        return greet();
      });
}

kj::Promise<bool> contact::greet() {
  last_failure_ = words_of(ETIMEDOUT);
  auto request = connection_->tier().infoRequest();
  write_call(request.initCall(), k_connect_attempt_max);
  return request.send()
      .then(
          [this](capnp::Response<rpc::Tier::InfoResults>&& response) {
            const auto answer = read_status(response.getStatus());
            if (answer) return true;
            last_failure_ = "it refuses to be asked";
            if (answer.error().code == status::version) {
              hopeless_ = answer.error();
              changed_.fire();
            }
            return false;
          },
          [this](kj::Exception&&) {
            // In TLS 1.3 the coordinator's verdict on our certificate comes after our handshake.
            const tls::refusal why = connection_->why();
            disproved_ = is_verdict(why);
            last_failure_ = disproved_ ? tls::words_of(why) : words_of(ECONNRESET);
            return false;
          })
      .exclusiveJoin(loop_.delay(k_connect_attempt_max).then([] { return false; }))
      .then([this](bool greeted) {
        if (!greeted) connection_ = nullptr;
        return greeted;
      });
}

void contact::use_connection() {
  MOETIER_ASSERT(!greeted_ && connection_.get() != nullptr);
  greeted_ = true;
  backoff_ = k_backoff_first;
  hopeless_.reset();
  kj::TaskSet::ErrorHandler& failures = *this;
  connection_tasks_ = kj::heap<kj::TaskSet>(failures);
  connection_tasks_->add(beat());
  for (const auto& [id, s] : sessions_) {
    if (!s->ended) connection_tasks_->add(resume(id, number_));
  }
  if (std::exchange(was_connected_, true)) news_.tell(link_event::coordinator_back, session_id{});
  changed_.fire();
}

void contact::drop_connection() {
  lose(number_);
  connection_tasks_ = nullptr;
  for (const auto& [id, s] : sessions_) s->capability = nullptr;
  connection_ = nullptr;
  last_failure_ = "the connection was lost";
  news_.tell(link_event::coordinator_lost, session_id{});
}

void contact::lose(std::uint64_t number) {
  if (number != number_ || !greeted_) return;
  greeted_ = false;
  ++number_;
  lost_->fulfill();  // keep_connected() drops it, outside of whatever callback we are in
}

kj::Promise<void> contact::beat() {
  duration_ns interval = k_ping_interval;
  for (const auto& [id, s] : sessions_) {
    if (!s->ended) interval = std::min(interval, std::max(s->lease / 4, k_millisecond));
  }
  return loop_.delay(interval).then([this]() -> kj::Promise<void> {
    const std::uint64_t number = number_;
    if (!usable()) return kj::READY_NOW;
    for (const auto& [id, s] : sessions_) {
      if (ready(id) != nullptr) renew(id, *s);
    }
    auto request = connection_->tier().pingRequest();
    write_call(request.initCall(), k_ping_limit);
    return request.send()
        .then([](capnp::Response<rpc::Tier::PingResults>&&) { return true; },
              [](kj::Exception&&) { return false; })
        .exclusiveJoin(loop_.delay(k_ping_limit).then([] { return false; }))
        .then([this, number](bool alive) -> kj::Promise<void> {
          if (alive) return beat();
          lose(number);
          return kj::READY_NOW;
        });
  });
}

// ---- sessions

void contact::renew(session_id id, session& s) {
  auto request = KJ_ASSERT_NONNULL(s.capability).renewRequest();
  write_call(request.initCall(), k_ping_limit);
  request.setCalls(s.use->calls.load(std::memory_order_relaxed));
  request.setTokenLayers(s.use->token_layers.load(std::memory_order_relaxed));
  request.setGeneration(s.use->generation.load(std::memory_order_relaxed));
  connection_tasks_->add(request.send().then(
      [this, id](capnp::Response<rpc::Session::RenewResults>&& response) {
        const auto answer = read_status(response.getStatus());
        if (!answer && answer.error().code == status::session_lost) {
          lose_session(id, answer.error());
        }
        const auto found = sessions_.find(id);
        if (answer && found != sessions_.end()) {
          found->second->tokens_per_second->store(response.getTokensPerSecond(),
                                                  std::memory_order_relaxed);
        }
      },
      [](kj::Exception&&) {}));  // the ping beside it notices a lost connection
}

kj::Promise<void> contact::resume(session_id id, std::uint64_t number) {
  const auto found = sessions_.find(id);
  if (number != number_ || !usable() || found == sessions_.end()) return kj::READY_NOW;
  session& s = *found->second;
  const auto decide = [this, id, number](rpc::Status::Reader status_reader,
                                         rpc::Tier::Grant::Reader grant,
                                         rpc::Session::Client capability) -> kj::Promise<void> {
    const auto now = sessions_.find(id);
    if (number != number_ || now == sessions_.end()) return kj::READY_NOW;
    const auto answer = read_status(status_reader);
    if (!answer && is_final(answer.error())) {
      lose_session(id, answer.error());
      return kj::READY_NOW;
    }
    if (!answer) {
      const duration_ns pause =
          std::clamp(duration_ns{answer.error().retry_after_ns}, k_backoff_first, k_backoff_max);
      return loop_.delay(pause).then([this, id, number] { return resume(id, number); });
    }
    now->second->server_id = session_id(grant.getSession());
    now->second->capability = kj::mv(capability);
    now->second->number = number;
    (void)adopt(grant.getSnapshot());  // one that does not decode leaves the older in use
    changed_.fire();
    return watch(id, number);
  };
  const auto again = [this, id, number](kj::Exception&&) -> kj::Promise<void> {
    return loop_.delay(k_backoff_max).then([this, id, number] { return resume(id, number); });
  };
  if (s.wish.thin) {
    auto request = connection_->tier().openSessionRequest();
    write_call(request.initCall(), k_resume_limit);
    write_wish(request.initWish(), s.wish);
    return request.send().then(
        [decide](capnp::Response<rpc::Tier::OpenSessionResults>&& r) {
          return decide(r.getStatus(), r.getGrant(), r.getSession());
        },
        kj::cp(again));
  }
  auto request = connection_->tier().resumeSessionRequest();
  write_call(request.initCall(), k_resume_limit);
  request.setSession(s.server_id.value);
  request.setIncarnation(s.wish.incarnation.value);
  return request.send().then(
      [decide](capnp::Response<rpc::Tier::ResumeSessionResults>&& r) {
        return decide(r.getStatus(), r.getGrant(), r.getSession());
      },
      kj::cp(again));
}

kj::Promise<void> contact::watch(session_id id, std::uint64_t number) {
  session* const s = ready(id);
  if (number != number_ || s == nullptr) return kj::READY_NOW;
  auto request = KJ_ASSERT_NONNULL(s->capability).watchRequest();
  write_call(request.initCall(), k_watch_limit);
  if (const auto newest = news_.snapshots.newest()) {
    auto seen = request.initSeen();
    seen.setGeneration(newest->generation.value);
    seen.setSharesEpoch(newest->shares.revision().epoch.value);
    seen.setSharesCounter(newest->shares.revision().counter);
  }
  if (const auto suspicion = news_.snapshots.suspicion()) {
    request.setSeenSuspicion(suspicion->number);
  }
  return request.send().then(
      [this, id,
       number](capnp::Response<rpc::Session::WatchResults>&& response) -> kj::Promise<void> {
        const auto answer = read_status(response.getStatus());
        if (!answer && is_final(answer.error())) {
          lose_session(id, answer.error());
          return kj::READY_NOW;
        }
        const bool bad = answer && response.getSnapshot().size() > 0 &&
                         !adopt(response.getSnapshot()).has_value();
        if (answer && response.hasSuspicion()) suspect(response.getSuspicion());
        if (answer && !bad) return watch(id, number);
        return loop_.delay(k_backoff_max).then([this, id, number] { return watch(id, number); });
      },
      [](kj::Exception&&) {});  // the beat notices
}

void contact::lose_session(session_id id, error why) {
  const auto found = sessions_.find(id);
  if (found == sessions_.end() || found->second->ended) return;
  found->second->ended = std::move(why);
  found->second->capability = nullptr;
  news_.session_gone(id, true);
  news_.tell(link_event::session_lost, id);
  changed_.fire();
}

void contact::forget(session_id id) {
  sessions_.erase(id);
  news_.session_gone(id, false);
  changed_.fire();
}

contact::session* contact::ready(session_id id) {
  const auto found = sessions_.find(id);
  if (found == sessions_.end() || !usable()) return nullptr;
  session& s = *found->second;
  return s.capability != nullptr && s.number == number_ ? &s : nullptr;
}

std::optional<error> contact::refusal(session_id id) const {
  const auto found = sessions_.find(id);
  if (found != sessions_.end()) return found->second->ended;
  const bool was_ours = id.value != 0 && id <= highest_;
  return make_error(was_ours ? reason::session_closed : reason::session_unknown, id.value);
}

expected<transport::snapshot_ptr> contact::adopt(capnp::Data::Reader bytes) {
  if (bytes.size() == 0) return fail(reason::not_ready, "nothing is committed yet");
  auto decoded =
      transport::snapshot_from_bytes(std::as_bytes(std::span(bytes.begin(), bytes.size())));
  if (!decoded) return unexpected_error(decoded.error());
  auto snapshot = std::make_shared<const transport::routing_snapshot>(std::move(*decoded));
  if (news_.snapshots.offer(snapshot)) news_.tell(link_event::snapshot, session_id{});
  return snapshot;
}

void contact::suspect(rpc::Session::Suspicion::Reader told) {
  auto suspicion = read_suspicion(told);
  if (!suspicion) return;  // a hint that makes no sense is none
  const auto before = news_.snapshots.suspicion();
  if (before != nullptr && *before == *suspicion) return;
  news_.snapshots.suspect(std::make_shared<const transport::suspicion>(std::move(*suspicion)));
  news_.tell(link_event::suspect, session_id{});
}

void contact::report_late(session_id id, worker_id worker, incarnation_id incarnation) {
  session* const s = ready(id);
  if (s == nullptr || s->wish.thin) return;  // nobody to tell: it is only a hint
  auto request = KJ_ASSERT_NONNULL(s->capability).reportLateRequest();
  write_call(request.initCall(), k_ping_limit);
  request.setWorker(worker.value);
  request.setIncarnation(incarnation.value);
  connection_tasks_->add(request.send().then(
      [](capnp::Response<rpc::Session::ReportLateResults>&&) {}, [](kj::Exception&&) {}));
}

expected<session_granted> contact::take_grant(rpc::Tier::Grant::Reader grant) {
  auto snapshot = adopt(grant.getSnapshot());
  if (!snapshot) return unexpected_error(snapshot.error());
  session_granted granted;
  granted.session = session_id(grant.getSession());
  granted.source = source_id(grant.getSource());
  granted.tokens_max = grant.getTokensMax();
  granted.micro_batches = grant.getMicroBatches();
  granted.top_k = grant.getTopK();
  granted.call_deadline = grant.getCallDeadlineNs();
  granted.step_deadline = grant.getStepDeadlineNs();
  if (grant.getDeadlineClass() >= 1 && grant.getDeadlineClass() <= k_deadline_classes)
    granted.urgency = static_cast<deadline_class>(grant.getDeadlineClass() - 1);
  granted.tokens_per_second =
      std::make_shared<std::atomic<std::uint64_t>>(grant.getTokensPerSecond());
  granted.snapshot = std::move(*snapshot);
  granted.use = std::make_shared<session_use>();
  return granted;
}

void contact::write_call(rpc::Call::Builder to, duration_ns limit, std::uint64_t request) {
  client::write_call(to, client_, request != 0 ? request : next_request_++, limit);
}

// Every promise handles its own failures; what arrives here is a bug of ours, and the link
// still must not take its process down: the connection ends and is made anew.
void contact::taskFailed(kj::Exception&&) { lose(number_); }

}  // namespace moetier::client
