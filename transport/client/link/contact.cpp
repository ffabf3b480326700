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
    default: return "no connection";
  }
}

// The coordinator's answer that ends a session, as opposed to one that asks for patience.
bool is_final(const error& e) {
  return e.code == status::session_lost || e.code == status::cancelled || !is_retryable(e.code);
}

}  // namespace

struct contact::session {
  session_wish wish;
  session_id server_id;  // differs from our name for it once a thin session was opened anew
  duration_ns lease = 0;
  duration_ns call_deadline = 0;
  kj::Maybe<rpc::Session::Client> capability;
  std::uint64_t number = 0;    // connection of the capability
  std::optional<error> ended;  // by the coordinator
};

contact::contact(rpc_loop& loop, link_news& news, std::vector<socket_address> addresses,
                 std::uint64_t client)
    : loop_(loop),
      news_(news),
      addresses_(std::move(addresses)),
      client_(client),
      jitter_(client),
      tasks_(*this) {
  MOETIER_ASSERT(!addresses_.empty());
  tasks_.add(keep_connected());
}

contact::~contact() noexcept(false) = default;

// ---- the connection

kj::Promise<void> contact::keep_connected() {
  return try_connect(0).then([this](bool up) -> kj::Promise<void> {
    if (!up) {
      jitter_ = mix(jitter_);
      const duration_ns pause = backoff_ / 2 + jitter_ % (backoff_ / 2 + 1);
      backoff_ = std::min(backoff_ * 2, k_backoff_max);
      return loop_.delay(pause).then([this] { return keep_connected(); });
    }
    auto lost = kj::newPromiseAndFulfiller<void>();
    lost_ = kj::mv(lost.fulfiller);
    use_connection();
    return connection_->on_disconnect().exclusiveJoin(kj::mv(lost.promise)).then([this] {
      drop_connection();
      return keep_connected();
    });
  });
}

kj::Promise<bool> contact::try_connect(std::size_t index) {
  return connect_socket(loop_, addresses_[index], k_connect_attempt_max)
      .then([this, index](connect_result result) -> kj::Promise<bool> {
        if (result.fd >= 0) {
          connection_ = kj::heap<connection>(loop_, result.fd);
          return greet();
        }
        last_failure_ = words_of(result.error);
        if (index + 1 < addresses_.size()) return try_connect(index + 1);
        return false;
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
            last_failure_ = words_of(ECONNRESET);
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
  connection_tasks_->add(request.send().then(
      [this, id](capnp::Response<rpc::Session::RenewResults>&& response) {
        const auto answer = read_status(response.getStatus());
        if (!answer && answer.error().code == status::session_lost) {
          lose_session(id, answer.error());
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
  granted.snapshot = std::move(*snapshot);
  return granted;
}

void contact::write_call(rpc::Call::Builder to, duration_ns limit, std::uint64_t request) {
  client::write_call(to, client_, request != 0 ? request : next_request_++, limit);
}

// ---- calls

template <class T>
contact::reply<T> contact::ask(const char* name, duration_ns limit, duration_ns slack,
                               attempt<T> once) {
  limit = std::min(limit, k_deadline_max);
  auto late = loop_.delay(limit + slack).then([this, name, limit]() -> expected<T> {
    if (!usable()) return fail(reason::coordinator_unreached, last_failure_);
    return fail(reason::deadline_passed, name, limit / k_millisecond);
  });
  return tries<T>(std::make_shared<attempt<T>>(std::move(once)), monotonic_now() + limit)
      .exclusiveJoin(kj::mv(late));
}

template <class T>
contact::reply<T> contact::tries(std::shared_ptr<attempt<T>> once, time_ns end) {
  const time_ns now = monotonic_now();
  if (now >= end) return kj::NEVER_DONE;  // the limit beside it ends the call
  if (hopeless_) return expected<T>(unexpected_error(*hopeless_));
  if (usable()) {
    KJ_IF_MAYBE (sent, (*once)(end - now)) {
      auto judge = [this, once, end](expected<T> result) -> reply<T> {
        if (result || result.error().why != reason::shutting_down) return result;
        // It will be gone in a moment, and back or replaced in the next.
        return changed_.next().then([this, once, end] { return tries<T>(once, end); });
      };
      return sent->then(
          kj::mv(judge), [this, once, end, number = number_](kj::Exception&& e) -> reply<T> {
            if (e.getType() == kj::Exception::Type::DISCONNECTED || number != number_) {
              lose(number);
              return tries<T>(once, end);
            }
            // Not a refusal, which comes as a status: the other side breaks the protocol.
            return expected<T>(fail(reason::internal_error, "the answer breaks the protocol"));
          });
    }
  }
  return changed_.next().then([this, once, end] { return tries<T>(once, end); });
}

contact::reply<void> contact::connected(duration_ns limit) {
  return ask<void>("connect", limit, 0, [](duration_ns) -> kj::Maybe<reply<void>> {
    return reply<void>(expected<void>());
  });
}

contact::reply<transport::snapshot_ptr> contact::snapshot(duration_ns limit) {
  return ask<transport::snapshot_ptr>(
      "snapshot", limit, 0, [this](duration_ns left) -> kj::Maybe<reply<transport::snapshot_ptr>> {
        auto request = connection_->tier().snapshotRequest();
        write_call(request.initCall(), left);
        return request.send().then([this](capnp::Response<rpc::Tier::SnapshotResults>&& response)
                                       -> expected<transport::snapshot_ptr> {
          const auto answer = read_status(response.getStatus());
          if (!answer) return unexpected_error(answer.error());
          return adopt(response.getSnapshot());
        });
      });
}

contact::reply<session_granted> contact::open(session_wish wish, duration_ns limit) {
  if (sessions_.size() >= k_sessions_per_link_max) {
    return expected<session_granted>(fail(reason::limit_exceeded, "sessions of one link",
                                          sessions_.size() + 1, k_sessions_per_link_max));
  }
  return ask<session_granted>(
      "open_session", limit, 0,
      [this, wish](duration_ns left) -> kj::Maybe<reply<session_granted>> {
        auto request = connection_->tier().openSessionRequest();
        write_call(request.initCall(), left);
        write_wish(request.initWish(), wish);
        return request.send().then([this, wish, number = number_](
                                       capnp::Response<rpc::Tier::OpenSessionResults>&& response)
                                       -> expected<session_granted> {
          const auto answer = read_status(response.getStatus());
          if (!answer) return unexpected_error(answer.error());
          auto granted = take_grant(response.getGrant());
          if (!granted) return granted;
          auto s = std::make_unique<session>();
          s->wish = wish;
          s->server_id = granted->session;
          s->lease = response.getGrant().getLeaseNs();
          s->call_deadline = granted->call_deadline;
          s->capability = response.getSession();
          s->number = number;
          sessions_[granted->session] = std::move(s);
          highest_ = std::max(highest_, granted->session);
          news_.session_opened(granted->session);
          if (number == number_) connection_tasks_->add(watch(granted->session, number));
          return granted;
        });
      });
}

contact::reply<void> contact::attach(session_id id, transport::source_shape shape,
                                     transport::member_address address, duration_ns limit) {
  return ask<void>(
      "attach", limit, 0, [this, id, shape, address](duration_ns left) -> kj::Maybe<reply<void>> {
        if (auto never = refusal(id)) return reply<void>(expected<void>(unexpected_error(*never)));
        session* const s = ready(id);
        if (s == nullptr) return nullptr;
        auto request = KJ_ASSERT_NONNULL(s->capability).attachRequest();
        write_call(request.initCall(), left);
        write_shape(request.initShape(), shape);
        request.setAddress(data_of(address));
        return request.send().then([](capnp::Response<rpc::Session::AttachResults>&& response) {
          return read_status(response.getStatus());
        });
      });
}

contact::reply<void> contact::close(session_id id, duration_ns limit) {
  return ask<void>("close_session", limit, 0,
                   [this, id](duration_ns left) -> kj::Maybe<reply<void>> {
                     const auto found = sessions_.find(id);
                     if (found == sessions_.end()) {
                       return reply<void>(expected<void>(unexpected_error(*refusal(id))));
                     }
                     if (found->second->ended) return reply<void>(expected<void>());
                     session* const s = ready(id);
                     if (s == nullptr) return nullptr;
                     auto request = KJ_ASSERT_NONNULL(s->capability).closeRequest();
                     write_call(request.initCall(), left);
                     return request.send().then(
                         [](capnp::Response<rpc::Session::CloseResults>&& response) {
                           return read_status(response.getStatus());
                         });
                   })
      .then([this, id](expected<void> result) {
        // Closed here whatever came back: without us its lease lapses.
        forget(id);
        return result;
      });
}

contact::reply<thin_result> contact::forward(session_id id, const thin_call& call) {
  if (const auto fits = check_forward_size(call); !fits) {
    return expected<thin_result>(unexpected_error(fits.error()));
  }
  const auto found = sessions_.find(id);
  const duration_ns limit = call.deadline != 0 || found == sessions_.end()
                                ? std::max<duration_ns>(call.deadline, 1)
                                : found->second->call_deadline;
  // One number for all tries: the session answers a repeated one without a second computation.
  const std::uint64_t number = next_request_++;
  return ask<thin_result>(
      "forward", limit, k_answer_slack,
      [this, id, call, number](duration_ns left) -> kj::Maybe<reply<thin_result>> {
        if (auto never = refusal(id)) {
          return reply<thin_result>(expected<thin_result>(unexpected_error(*never)));
        }
        session* const s = ready(id);
        if (s == nullptr) return nullptr;
        auto request = KJ_ASSERT_NONNULL(s->capability).forwardRequest(rows_size_hint(call));
        write_call(request.initCall(), left, number);
        write_rows(request.initRows(), call);
        return request.send().then([call](capnp::Response<rpc::Session::ForwardResults>&& response)
                                       -> expected<thin_result> {
          const auto answer = read_status(response.getStatus());
          if (!answer) return unexpected_error(answer.error());
          return read_sums(response.getSums(), call.tokens);
        });
      });
}

contact::reply<std::string> contact::document(bool placement, duration_ns limit) {
  return ask<std::string>(
      placement ? "placement" : "status", limit, 0,
      [this, placement](duration_ns left) -> kj::Maybe<reply<std::string>> {
        auto admin = connection_->tier().adminRequest();
        write_call(admin.initCall(), left);
        auto capability = admin.send().getAdmin();  // pipelined: one round trip
        const auto take = [](rpc::Status::Reader s,
                             capnp::Text::Reader t) -> expected<std::string> {
          const auto answer = read_status(s);
          if (!answer) return unexpected_error(answer.error());
          return std::string(t.cStr(), t.size());
        };
        if (placement) {
          auto request = capability.placementRequest();
          write_call(request.initCall(), left);
          return request.send().then(
              [take](capnp::Response<rpc::Admin::PlacementResults>&& response) {
                return take(response.getStatus(), response.getDocument());
              });
        }
        auto request = capability.statusRequest();
        write_call(request.initCall(), left);
        return request.send().then([take](capnp::Response<rpc::Admin::StatusResults>&& response) {
          return take(response.getStatus(), response.getDocument());
        });
      });
}

// Every promise above handles its own failures; what arrives here is a bug of ours, and the link
// still must not take its process down: the connection ends and is made anew.
void contact::taskFailed(kj::Exception&&) { lose(number_); }

}  // namespace moetier::client
