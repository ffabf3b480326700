#include "coordinator/rpc/session_service.hpp"

#include <tuple>
#include <utility>

#include <fmt/core.h>

#include "coordinator/rpc/answering.hpp"
#include "coordinator/rpc/limits.hpp"
#include "schemas/base/no_credit.hpp"

namespace moetier::coordinator {

void account::close() {
  for (session_service* session : std::set(sessions_)) session->disconnected();
}

session_service::session_service(const service_place& place, const session_grant& grant,
                                 incarnation_id incarnation, const session_request& wish)
    : desk_(place.the_desk),
      place_(place),
      session_(grant.session),
      incarnation_(incarnation),
      tokens_max_(grant.tokens_max),
      top_k_(grant.top_k),
      thin_(wish.thin),
      gate_on_tier_(wish.gate_on_tier) {
  desk_.enter(session_, *this);
  place_.client->add(*this);
}

session_service::~session_service() noexcept {
  place_.client->remove(*this);
  give_back();
}

void session_service::give_back() {
  desk_.leave(session_, *this);
  if (!thin_ || ended_) return;
  ended_ = make_error(reason::session_closed, session_.value);
  desk_.end_place(session_);
  desk_.port().post(close_session{0, session_, incarnation_});  // nobody waits for its answer
}

void session_service::end(const error& why) {
  if (!ended_) ended_ = why;
}

void session_service::disconnected() {
  connected_ = false;
  give_back();
  desk_.tell_news();  // watches of it end
}

kj::Promise<void> session_service::attach(AttachContext context) {
  return answering(place_, context, "attach",
                   [this, context](duration_ns) mutable -> kj::Promise<expected<void>> {
                     if (ended_) return expected<void>(unexpected_error(*ended_));
                     if (thin_) {
                       return expected<void>(fail(reason::sequence, "attach",
                                                  "the gateway is this session's source"));
                     }
                     const auto address = context.getParams().getAddress();
                     if (address.size() == 0 || address.size() > k_address_bytes_max) {
                       return expected<void>(fail(reason::limit_exceeded, "address bytes",
                                                  address.size(), k_address_bytes_max));
                     }
                     const auto bytes = std::as_bytes(std::span(address.begin(), address.size()));
                     return desk_.attach(session_, incarnation_,
                                         client::read_shape(context.getParams().getShape()),
                                         {bytes.begin(), bytes.end()});
                   });
}

kj::Promise<void> session_service::forward(ForwardContext context) {
  return answering(
      place_, context, "forward",
      [this, context](duration_ns limit) mutable -> kj::Promise<expected<void>> {
        if (ended_) return expected<void>(unexpected_error(*ended_));
        if (!thin_) {
          return expected<void>(
              fail(reason::sequence, "forward", "the session has a source half of its own"));
        }
        if (auto open = desk_.admission(); !open) return open;
        auto answer = ask(context.getParams().getCall(), context.getParams().getRows(), limit);
        if (!answer) return expected<void>(unexpected_error(answer.error()));
        context.releaseParams();  // copied out: megabytes need not wait for the workers
        return answer->then([context](desk::thin_answer result) mutable -> expected<void> {
          if (!*result) return unexpected_error(result->error());
          const auto& sums = **result;
          const std::size_t bytes = sums.output.size() * sizeof(float) +
                                    sums.ids.size() * sizeof(std::int32_t) * 2 +
                                    sums.bad_rows.size();
          context.initResults(capnp::MessageSize{bytes / sizeof(capnp::word) + 64, 0});
          client::write_sums(context.getResults().initSums(), sums);
          return {};
        });
      });
}

// However small a repeat is, its answer is a whole one: many that wait would come at once.
expected<kj::Promise<desk::thin_answer>> session_service::repeat() {
  if (repeats_waiting_ >= k_waiting_repeats_max) {
    desk_.counters().calls_overloaded.fetch_add(1, std::memory_order_relaxed);
    return no_credit(fmt::format("{} repeats of this call wait already", repeats_waiting_),
                     k_repeat_pause);
  }
  ++repeats_waiting_;
  return newest_->answer.addBranch().attach(kj::defer([this] { --repeats_waiting_; }));
}

expected<kj::Promise<desk::thin_answer>> session_service::ask(rpc::Call::Reader call,
                                                              rpc::Session::Rows::Reader rows,
                                                              duration_ns limit) {
  const std::uint64_t client = call.getClientId();
  const std::uint64_t request = call.getRequestId();
  if (newest_ && request != 0 && newest_->client == client && newest_->request == request) {
    return repeat();
  }
  // Before the rows are read: a refusal costs next to nothing however many they are.
  if (auto room = desk_.room_for(session_); !room) {
    desk_.counters().calls_overloaded.fetch_add(1, std::memory_order_relaxed);
    return unexpected_error(room.error());
  }
  const auto& model = desk_.snapshot()->model;  // a session was granted, so there is one
  auto copied = client::read_rows(rows, {.tokens_max = tokens_max_,
                                         .hidden_size = model.hidden_size,
                                         .columns = model.columns(),
                                         .top_k = top_k_,
                                         .gate_on_tier = gate_on_tier_});
  if (!copied) return unexpected_error(copied.error());
  ++use_.calls;
  use_.token_layers += copied->tokens;
  use_.generation = desk_.snapshot()->generation;
  auto fork = desk_.forward(session_, std::move(*copied), limit).fork();
  auto branch = fork.addBranch();
  newest_.emplace(asked{client, request, kj::mv(fork)});
  return branch;
}

kj::Promise<void> session_service::renew(RenewContext context) {
  return answering(place_, context, "renew",
                   [this, context](duration_ns) mutable -> kj::Promise<expected<void>> {
                     if (ended_) return expected<void>(unexpected_error(*ended_));
                     const auto said = context.getParams();
                     if (!thin_) {
                       use_ = {.calls = said.getCalls(),
                               .token_layers = said.getTokenLayers(),
                               .generation = generation_number(said.getGeneration())};
                     }
                     if (const time_ns now = monotonic_now();
                         now - renewed_at_ >= k_renewal_pause) {
                       renewed_at_ = now;
                       desk_.port().post(renew_session{session_, incarnation_, use_});
                     }
                     const std::uint64_t rate = desk_.rate_of(session_);
                     if (thin_) desk_.set_rate(session_, rate);
                     context.getResults().setTokensPerSecond(rate);
                     return expected<void>();
                   });
}

kj::Promise<void> session_service::watch(WatchContext context) {
  return answering(place_, context, "watch", [this, context](duration_ns limit) mutable {
    auto yields = yielded();
    return watched(context, context.getParams().getSeen(), monotonic_now() + limit)
        .exclusiveJoin(kj::mv(yields));
  });
}

// Ends the watch before this one, and is done when this one has to end: a snapshot is copied for
// each that waits, and one is enough. An error, as two that answered each other would spin.
kj::Promise<expected<void>> session_service::yielded() {
  if (watch_yields_.get() != nullptr) watch_yields_->fulfill();
  auto pair = kj::newPromiseAndFulfiller<void>();
  watch_yields_ = kj::mv(pair.fulfiller);
  return pair.promise.then(
      []() -> expected<void> { return no_credit("the session has a newer watch", k_watch_pause); });
}

bool session_service::is_newer_than(rpc::Revision::Reader seen) const {
  const auto& snapshot = desk_.snapshot();
  if (snapshot == nullptr) return false;
  const auto revision = snapshot->shares.revision();
  return std::tuple(snapshot->generation.value, revision.epoch.value,
                    std::uint64_t{revision.counter}) >
         std::tuple(seen.getGeneration(), seen.getSharesEpoch(),
                    std::uint64_t{seen.getSharesCounter()});
}

kj::Promise<expected<void>> session_service::watched(WatchContext context,
                                                     rpc::Revision::Reader seen, time_ns until) {
  if (ended_) return expected<void>(unexpected_error(*ended_));
  const transport::suspicion& suspicion = *desk_.suspicion();
  const bool suspects_others = context.getParams().getSeenSuspicion() != suspicion.number;
  if (is_newer_than(seen) || suspects_others) {
    if (is_newer_than(seen)) {
      const auto bytes = desk_.snapshot_bytes();
      if (!bytes) return expected<void>(unexpected_error(bytes.error()));
      context.getResults().setSnapshot(*bytes);
    }
    client::write_suspicion(context.getResults().initSuspicion(), suspicion);
    return expected<void>();
  }
  const time_ns now = monotonic_now();
  if (now >= until || !connected_) return expected<void>();
  return desk_.news()
      .exclusiveJoin(desk_.loop().delay(until - now))
      .then([this, context, seen, until]() mutable { return watched(context, seen, until); });
}

kj::Promise<void> session_service::reportLate(ReportLateContext context) {
  return answering(
      place_, context, "report_late",
      [this, context](duration_ns) mutable -> kj::Promise<expected<void>> {
        if (ended_) return expected<void>(unexpected_error(*ended_));
        const auto told = context.getParams();
        desk_.port().post(late_report{session_, incarnation_, worker_id(told.getWorker()),
                                      incarnation_id(told.getIncarnation())});
        return expected<void>();
      });
}

kj::Promise<void> session_service::close(CloseContext context) {
  return answering(place_, context, "close", [this](duration_ns) -> kj::Promise<expected<void>> {
    if (ended_) return expected<void>();  // repeated, or the core was first
    ended_ = make_error(reason::session_closed, session_.value);
    desk_.end_place(session_);
    auto closed = desk_.close(session_, incarnation_);
    desk_.tell_news();  // watches end with the session
    return closed;
  });
}

}  // namespace moetier::coordinator
