#include "coordinator/gateway/gateway.hpp"

#include <algorithm>
#include <utility>

#include "coordinator/gateway/scarce.hpp"
#include "schemas/base/no_credit.hpp"

namespace moetier::coordinator {

gateway::gateway(transport::Communication& carrier, gateway_options options)
    : carrier_(carrier), options_(std::move(options)), budget_(options_.bytes_max) {}

gateway::~gateway() {
  board_.close();  // nobody waits for a newer snapshot any more
  // All are told first, so that their last calls run out side by side.
  for (auto& [id, session] : sessions_) session->end();
}

void gateway::reading::add(const thin_session& session) {
  source += session.reading();
  carrier += session.carrier_counts();
}

gateway::reading gateway::read() const {
  const std::lock_guard lock(mutex_);
  reading all = ended_;
  all.bytes_held = budget_.held();
  for (const auto& [id, session] : sessions_) all.add(*session);
  for (const auto& session : ending_) all.add(*session);
  return all;
}

void gateway::reap() {
  std::erase_if(ending_, [this](const auto& session) {
    if (!session->finished()) return false;
    ended_.add(*session);
    return true;
  });
}

void gateway::open(const thin_session_options& options, transport::snapshot_ptr snapshot,
                   thin_session::opened done) {
  board_.offer(std::move(snapshot));
  expected<void> admitted;
  {
    const std::lock_guard lock(mutex_);
    reap();
    if (board_.newest() == nullptr) {
      admitted = fail(reason::not_ready, "nothing is committed yet");
    } else if (sessions_.size() + ending_.size() >= options_.sessions_max) {
      admitted = no_credit("the gateway's sessions are at their limit", k_session_pause);
    } else if (sessions_.count(options.session) != 0) {
      admitted = fail(reason::sequence, "open", "the gateway serves this session already");
    } else {
      admitted = start(options, done);
    }
  }
  if (!admitted) done(unexpected_error(admitted.error()));
}

// Its place comes first: once the thread runs, the session answers `done`.
expected<void> gateway::start(const thin_session_options& options,
                              const thin_session::opened& done) {
  auto started = of_scarce([&]() -> expected<void> {
    sessions_[options.session] = nullptr;
    sessions_[options.session] =
        std::make_unique<thin_session>(carrier_, board_,
                                       thin_session_hooks{.router = options_.router,
                                                          .report_late = options_.report_late,
                                                          .waits = waits_,
                                                          .budget = budget_,
                                                          .on_timeout = options_.on_timeout},
                                       options, done);
    return {};
  });
  if (!started) sessions_.erase(options.session);
  return started;
}

void gateway::forward(session_id session, client::thin_rows rows, duration_ns limit,
                      thin_session::forwarded done) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = sessions_.find(session);
    if (found != sessions_.end()) {
      return found->second->forward(std::move(rows), limit, std::move(done));
    }
  }
  done(fail(reason::session_closed, session.value));
}

expected<void> gateway::room_for(session_id session) const {
  const std::lock_guard lock(mutex_);
  const auto found = sessions_.find(session);
  if (found == sessions_.end()) return {};  // forward() says what is wrong
  return found->second->room();
}

void gateway::set_rate(session_id session, std::uint64_t tokens_per_second) {
  const std::lock_guard lock(mutex_);
  const auto found = sessions_.find(session);
  if (found != sessions_.end()) found->second->set_rate(tokens_per_second);
}

void gateway::end(session_id session) noexcept {
  const std::lock_guard lock(mutex_);
  reap();
  const auto found = sessions_.find(session);
  if (found == sessions_.end()) return;
  found->second->end();
  ending_.push_back(std::move(found->second));
  sessions_.erase(found);
}

void gateway::on_snapshot(transport::snapshot_ptr snapshot) { board_.offer(std::move(snapshot)); }

void gateway::on_suspicion(transport::suspicion_ptr suspicion) {
  board_.suspect(std::move(suspicion));
}

std::size_t gateway::sessions() const {
  const std::lock_guard lock(mutex_);
  return sessions_.size();
}

}  // namespace moetier::coordinator
