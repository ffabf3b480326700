#pragma once
// The coordinator behind a control_port, as far as sessions go: grants, resumes, renews, closes,
// and does what a test tells it: stay silent, refuse, end a session. It outlives servers, so that
// one can be killed and started anew over it. Thread: any.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <optional>

#include "coordinator/control_port.hpp"
#include "coordinator/rpc/rpc_server.hpp"
#include "tests/transport/client/toy_experts.hpp"

namespace moetier::coordinator {

class fake_tier final : public control_port {
 public:
  struct held {
    session_request request;
    bool attached = false;
    int renewals = 0;
  };

  explicit fake_tier(transport::snapshot_ptr snapshot) : snapshot_(std::move(snapshot)) {}

  // The server that is up, or null.
  void sink(control_sink* to) {
    const std::lock_guard lock(mutex_);
    sink_ = to;
  }

  void post(event what) override {
    const std::lock_guard lock(mutex_);
    if (silent) return;
    std::visit([this](const auto& e) { on(e); }, what);
    changed_.notify_all();
  }

  std::shared_ptr<const tier_view> view() const override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !frozen_; });
    auto view = std::make_shared<tier_view>();
    view->epoch = epoch_number(3);
    view->snapshot = snapshot_;
    view->ready = snapshot_ != nullptr;
    if (snapshot_ != nullptr) {
      view->generation = snapshot_->generation;
      view->plan = snapshot_->plan;
      view->revision = snapshot_->shares.revision();
    }
    view->workers.resize(workers_shown);
    view->runs_adapters = true;
    view->adapters = adapters_shown;
    return view;
  }

  // While on, view() blocks, and with it the server's thread: a coordinator that was stopped.
  void freeze(bool on) {
    {
      const std::lock_guard lock(mutex_);
      frozen_ = on;
    }
    changed_.notify_all();
  }

  void publish(transport::snapshot_ptr snapshot) {
    const std::lock_guard lock(mutex_);
    snapshot_ = std::move(snapshot);
    if (sink_ != nullptr) sink_->on_snapshot(snapshot_);
  }
  void end(session_id session, error why) {
    const std::lock_guard lock(mutex_);
    sessions_.erase(session);
    if (sink_ != nullptr) sink_->on_session_ended({session, std::move(why)});
  }
  void forget_all() {  // a restart that lost its sessions
    const std::lock_guard lock(mutex_);
    sessions_.clear();
  }

  std::map<session_id, held> sessions() const {
    const std::lock_guard lock(mutex_);
    return sessions_;
  }
  // Waits until `is_true` of the sessions; false after ten seconds.
  bool wait(const std::function<bool(const std::map<session_id, held>&)>& is_true) const {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(10), [&] { return is_true(sessions_); });
  }

  // Set before use.
  std::function<expected<void>(const attach_session&, const held&)> on_attach;
  std::function<expected<void>(const load_adapter&)> on_load;
  std::atomic<bool> silent{false};
  duration_ns lease = k_second;
  std::size_t workers_shown = 0;
  std::vector<adapter_view> adapters_shown;
  // Read when nothing is under way.
  std::vector<load_adapter> loads;
  std::vector<std::string> drops;

 private:
  session_grant grant(session_id id, const session_request& r) const {
    return {.session = id,
            .source = source_id(static_cast<std::uint16_t>(id.value)),
            .tokens_max = r.tokens_max == 0 ? 16 : r.tokens_max,
            .micro_batches = r.micro_batches,
            .top_k = r.top_k == 0 ? 3 : r.top_k,
            .lease = lease,
            .call_deadline = 5 * k_second,
            .snapshot = snapshot_};
  }
  held* find(session_id id, incarnation_id incarnation) {
    const auto found = sessions_.find(id);
    if (found == sessions_.end() || found->second.request.incarnation != incarnation)
      return nullptr;
    return &found->second;
  }

  void on(const open_session& e) {
    const session_id id(next_++);
    sessions_[id].request = e.request;
    sink_->on_answer(answer_session{e.token, grant(id, e.request)});
  }
  void on(const attach_session& e) {
    held* const s = find(e.session, e.incarnation);
    if (s == nullptr) {
      return sink_->on_answer(answer_done{e.token, fail(reason::session_unknown, e.session.value)});
    }
    expected<void> result;
    if (on_attach) result = on_attach(e, *s);
    s->attached = result.has_value();
    sink_->on_answer(answer_done{e.token, result});
  }
  void on(const resume_session& e) {
    held* const s = find(e.session, e.incarnation);
    if (s == nullptr || (!e.tenant.empty() && e.tenant != s->request.tenant)) {
      return sink_->on_answer(
          answer_session{e.token, fail(reason::session_unknown, e.session.value)});
    }
    sink_->on_answer(answer_session{e.token, grant(e.session, s->request)});
  }
  void on(const renew_session& e) {
    if (held* const s = find(e.session, e.incarnation)) ++s->renewals;
  }
  void on(const close_session& e) {
    const bool known = find(e.session, e.incarnation) != nullptr;
    sessions_.erase(e.session);
    if (sink_ == nullptr) return;
    expected<void> result;
    if (!known) result = fail(reason::session_unknown, e.session.value);
    sink_->on_answer(answer_done{e.token, result});
  }
  void on(const load_adapter& e) {
    loads.push_back(e);
    if (sink_ == nullptr) return;
    expected<void> result;
    if (on_load) result = on_load(e);
    sink_->on_answer(answer_done{e.token, result});
  }
  void on(const drop_adapter& e) {
    drops.push_back(e.name);
    if (sink_ != nullptr) sink_->on_answer(answer_done{e.token, {}});
  }
  template <class Other>
  void on(const Other&) {}

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  control_sink* sink_ = nullptr;
  bool frozen_ = false;
  transport::snapshot_ptr snapshot_;
  std::uint32_t next_ = 1;
  std::map<session_id, held> sessions_;
};

// A server over a tier, on a port that stays the same when it is started anew.
class served final {
 public:
  explicit served(fake_tier& tier, gateway* thin = nullptr, rpc_options wish = {})
      : options(std::move(wish)), tier_(tier), gateway_(thin) {
    start();
  }
  ~served() { stop(); }

  void start() {
    server = std::make_unique<rpc_server>(tier_, gateway_, options);
    tier_.sink(server.get());
    const auto bound = server->start(fmt::format("127.0.0.1:{}", port));
    if (!bound) std::abort();
    port = *bound;
  }
  void stop() {
    if (server == nullptr) return;
    tier_.sink(nullptr);
    server.reset();
  }
  std::string address() const { return fmt::format("127.0.0.1:{}", port); }
  std::string admin_address() const { return "unix:" + options.admin_socket; }

  const rpc_options options;
  std::unique_ptr<rpc_server> server;
  std::uint16_t port = 0;

 private:
  fake_tier& tier_;
  gateway* const gateway_;
};

}  // namespace moetier::coordinator
