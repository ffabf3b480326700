#include "coordinator/rpc/desk.hpp"

#include <sys/random.h>

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "coordinator/rpc/limits.hpp"
#include "coordinator/rpc/session_service.hpp"
#include "schemas/base/assert.hpp"
#include "schemas/base/no_credit.hpp"
#include "transport/client/link/limits.hpp"

namespace moetier::coordinator {

template <class T>
kj::Promise<T> desk::wait_in(waiting<T>& place, request_token token) {
  auto pair = kj::newPromiseAndFulfiller<T>();
  place.emplace(token, kj::mv(pair.fulfiller));
  return kj::mv(pair.promise);
}

template <class T>
void desk::give(waiting<T>& place, request_token token, T value) {
  const auto found = place.find(token);
  if (found == place.end()) return;
  found->second->fulfill(std::move(value));
  place.erase(found);
}

desk::desk(client::rpc_loop& loop, control_port& port, gateway* thin,
           rpc_server::live_counters& counters, const rpc_options& options)
    : loop_(loop),
      port_(port),
      gateway_(thin),
      counters_(counters),
      admin_socket_(options.admin_socket),
      notice_(options.notice) {}

void desk::refused(const caller& who, const char* call, std::uint64_t request, const error& why) {
  counters_.calls_refused.fetch_add(1, std::memory_order_relaxed);
  if (why.code == status::denied) counters_.calls_denied.fetch_add(1, std::memory_order_relaxed);
  rpc_notice notice;
  notice.peer = who.by == link_kind::tls ? who.name : "local";
  notice.call = call;
  notice.request = request;
  notice.why = why;
  tell(notice);
}

kj::Promise<expected<session_grant>> desk::open(session_request request) {
  const request_token token = next_token_++;
  auto answer = wait_in(grants_, token);
  port_.post(open_session{token, std::move(request)});
  return answer;
}

kj::Promise<expected<session_grant>> desk::resume(session_id session, incarnation_id incarnation,
                                                  std::string tenant) {
  const request_token token = next_token_++;
  auto answer = wait_in(grants_, token);
  port_.post(resume_session{token, session, incarnation, std::move(tenant)});
  return answer;
}

kj::Promise<expected<void>> desk::attach(session_id session, incarnation_id incarnation,
                                         const transport::source_shape& shape,
                                         transport::member_address address) {
  const request_token token = next_token_++;
  auto answer = wait_in(done_, token);
  port_.post(attach_session{token, session, incarnation, shape, std::move(address)});
  return answer;
}

kj::Promise<expected<void>> desk::close(session_id session, incarnation_id incarnation) {
  const request_token token = next_token_++;
  auto answer = wait_in(done_, token);
  port_.post(close_session{token, session, incarnation});
  return answer;
}

kj::Promise<expected<void>> desk::load_adapter(std::string name, std::string path) {
  const request_token token = next_token_++;
  auto answer = wait_in(done_, token);
  port_.post(coordinator::load_adapter{token, std::move(name), std::move(path)});
  return answer;
}

kj::Promise<expected<void>> desk::drop_adapter(std::string name) {
  const request_token token = next_token_++;
  auto answer = wait_in(done_, token);
  port_.post(coordinator::drop_adapter{token, std::move(name)});
  return answer;
}

// The gateway answers on its own threads, maybe after this desk is gone: through the loop's mail,
// whose jobs run only while it lives.
kj::Promise<expected<thin_place>> desk::make_place(const thin_session_options& options,
                                                   transport::snapshot_ptr snapshot) {
  MOETIER_ASSERT(has_gateway());
  const request_token token = next_token_++;
  auto answer = wait_in(places_, token);
  gateway_->open(options, std::move(snapshot),
                 [this, mail = loop_.mail(), token](expected<thin_place> place) {
                   mail->post([this, token, place = std::move(place)]() mutable {
                     give(places_, token, std::move(place));
                   });
                 });
  return answer;
}

kj::Promise<desk::thin_answer> desk::forward(session_id session, client::thin_rows rows,
                                             duration_ns limit) {
  MOETIER_ASSERT(has_gateway());
  const request_token token = next_token_++;
  auto answer = wait_in(forwards_, token);
  gateway_->forward(session, std::move(rows), limit,
                    [this, mail = loop_.mail(), token](expected<client::thin_result> result) {
                      auto shared =
                          std::make_shared<const expected<client::thin_result>>(std::move(result));
                      mail->post([this, token, shared = std::move(shared)]() mutable {
                        give(forwards_, token, std::move(shared));
                        if (forwards_.empty() && drained_) std::exchange(drained_, nullptr)();
                      });
                    });
  return answer;
}

void desk::end_place(session_id session) {
  if (has_gateway()) gateway_->end(session);
}

expected<void> desk::room_for(session_id session) const {
  if (!has_gateway()) return {};
  return gateway_->room_for(session);
}

std::uint64_t desk::rate_of(session_id session) const {
  const auto view = port_.view();
  if (view == nullptr) return 0;
  const auto found = std::find_if(view->sessions.begin(), view->sessions.end(),
                                  [&](const auto& s) { return s.session == session; });
  return found == view->sessions.end() ? 0 : found->tokens_per_second;
}

void desk::set_rate(session_id session, std::uint64_t tokens_per_second) {
  if (has_gateway()) gateway_->set_rate(session, tokens_per_second);
}

void desk::drain(std::function<void()> done) {
  draining_ = true;
  if (forwards_.empty()) return done();
  drained_ = std::move(done);
}

expected<void> desk::room_to_open(const session_request& request) const {
  const bool batch = request.urgency == deadline_class::batch;
  const std::uint64_t most = k_backlog_max * (batch ? k_shed_percent : k_refuse_percent) / 100;
  const std::uint64_t now = port_.backlog();
  if (now < most) return {};
  return no_credit(
      fmt::format("{} events wait for the coordinator; sessions are opened below {}", now, most),
      100 * k_millisecond);
}

expected<void> desk::admission() const {
  if (draining_) return fail(reason::shutting_down, "the coordinator");
  return {};
}

void desk::enter(session_id session, session_service& service) { sessions_[session] = &service; }

void desk::leave(session_id session, session_service& service) {
  const auto found = sessions_.find(session);
  // A resumed session has another service already: that one stays.
  if (found != sessions_.end() && found->second == &service) sessions_.erase(found);
}

expected<capnp::Data::Reader> desk::snapshot_bytes() const {
  if (snapshot_ == nullptr) return fail(reason::not_ready, "nothing is committed yet");
  if (snapshot_bytes_.size() + client::k_message_overhead_bytes > k_rpc_message_bytes_max) {
    return fail(reason::limit_exceeded, "snapshot bytes", snapshot_bytes_.size(),
                k_rpc_message_bytes_max - client::k_message_overhead_bytes);
  }
  return client::data_of(snapshot_bytes_);
}

// When nobody waits any more, the granted lease lapses, as it is never renewed.
void desk::take(answer_session answer) { give(grants_, answer.token, std::move(answer.grant)); }
void desk::take(answer_done answer) { give(done_, answer.token, std::move(answer.result)); }

void desk::take_snapshot(transport::snapshot_ptr snapshot) {
  if (snapshot == nullptr) return;
  if (snapshot_ != nullptr && !transport::is_newer(*snapshot, *snapshot_)) return;
  if (gateway_ != nullptr) gateway_->on_snapshot(snapshot);
  snapshot_bytes_ = transport::to_bytes(*snapshot);
  snapshot_ = std::move(snapshot);
  news_.fire();
}

void desk::take_suspicion(transport::suspicion_ptr suspicion) {
  if (gateway_ != nullptr) gateway_->on_suspicion(suspicion);
  suspicion_ = std::move(suspicion);
  news_.fire();
}

void desk::take_ended(const session_ended& ended) {
  end_place(ended.session);
  const auto found = sessions_.find(ended.session);
  if (found != sessions_.end()) found->second->end(ended.why);
  news_.fire();
}

std::uint64_t random_bits() {
  std::uint64_t bits = 0;
  const auto got = getrandom(&bits, sizeof bits, 0);
  MOETIER_ASSERT(got == sizeof bits);  // at most 256 bytes are never cut short
  return bits;
}

}  // namespace moetier::coordinator
