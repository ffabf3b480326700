#include "actors/control/coordinator_shell.hpp"

#include <variant>
#include <vector>

#include "actors/control/told_log_level.hpp"

namespace moetier::actors {

using namespace coordinator;  // NOLINT: events and effects of the core fill this file

namespace {

moetier::log_level level_of(log_event::level l) noexcept {
  switch (l) {
    case log_event::level::debug: return log_level::debug;
    case log_event::level::info: return log_level::info;
    case log_event::level::warn: return log_level::warn;
    case log_event::level::error: return log_level::error;
  }
  return log_level::info;
}

}  // namespace

class coordinator_shell::doer final {
 public:
  doer(coordinator_shell& shell, worker_links& links) : shell_(shell), links_(links) {}

  // Whether the effect may have changed what people see.
  bool visible() const noexcept { return visible_; }

  void operator()(const send_to_worker& e) { links_.send(e.link, e.body); }
  void operator()(const cut_worker_link& e) {
    links_.cut(e.link);
    visible_ = true;
  }
  void operator()(const write_record& e) {
    const auto done = shell_.world_.write_record(e.expected, e.value);
    const bool by_disk = !done && done.error().why == reason::state_unusable;
    shell_.written_.push_back(
        {e.value.epoch, done.has_value(), by_disk ? done.error().text : std::string()});
    visible_ = true;
  }
  void operator()(const publish_snapshot& e) {
    visible_ = true;
    // Whoever asks the view inside the sink must find this snapshot there.
    shell_.picture();
    shell_.sink_->on_snapshot(e.snapshot);
  }
  void operator()(const tell_suspicion& e) {
    visible_ = true;
    shell_.sink_->on_suspicion(e.suspicion);
  }
  void operator()(const answer_session& e) {
    visible_ = true;
    shell_.sink_->on_answer(e);
  }
  void operator()(const answer_done& e) {
    visible_ = true;
    shell_.sink_->on_answer(e);
  }
  void operator()(const session_ended& e) {
    visible_ = true;
    shell_.sink_->on_session_ended(e);
  }
  void operator()(const log_event& e) {
    std::vector<log_field> fields;
    if (!e.about.worker.empty()) fields.emplace_back("worker", e.about.worker);
    if (e.about.session.value != 0) fields.emplace_back("session", e.about.session.value);
    fields.emplace_back("detail", e.detail);
    shell_.log_.write(level_of(e.severity), e.event, fields);
    visible_ = true;  // it is among the view's events
  }
  void operator()(const stopped& e) {
    visible_ = true;
    shell_.world_.on_stopped(e.failed, e.cause, e.why);
  }

 private:
  coordinator_shell& shell_;
  worker_links& links_;
  bool visible_ = false;
};

coordinator_shell::coordinator_shell(core_options options, std::optional<record> stored,
                                     coordinator_world world, event_log& log)
    : picture_every_(options.heartbeat_interval / 2),
      core_(std::move(options), std::move(stored)),
      world_(std::move(world)),
      log_(log),
      configured_level_(log.level()) {
  picture();
}

void coordinator_shell::start(control_sink& sink, worker_links& links) {
  sink_ = &sink;
  run(core_.start(monotonic_now()), links);
}

void coordinator_shell::handle(const event& what, worker_links& links) {
  const bool tick = std::holds_alternative<time_passed>(what);
  if (const auto* wish = std::get_if<set_log_level>(&what)) {
    log_.set_level(log_level_of(wish->level, configured_level_));
    log_.info("log_level", {{"set", log_level_name(log_.level())}});
  }
  run(core_.step(what, monotonic_now()), links);
  if (tick && monotonic_now() - view_made_at_ >= picture_every_) picture();
}

void coordinator_shell::run(effects todo, worker_links& links) {
  doer act(*this, links);
  for (;;) {
    for (const effect& e : todo) std::visit(act, e);
    if (written_.empty()) break;
    todo = core_.step(written_.front(), monotonic_now());
    written_.pop_front();
  }
  if (act.visible()) picture();
}

void coordinator_shell::picture() {
  const time_ns now = monotonic_now();
  auto fresh = std::make_shared<const tier_view>(core_.view(now));
  log_.stand(fresh->epoch, fresh->generation);
  const std::lock_guard lock(view_mutex_);
  view_ = std::move(fresh);
  view_made_at_ = now;
}

duration_ns coordinator_shell::view_age() const {
  const std::lock_guard lock(view_mutex_);
  return monotonic_now() - view_made_at_;
}

std::shared_ptr<const tier_view> coordinator_shell::view() const {
  const std::lock_guard lock(view_mutex_);
  return view_;
}

}  // namespace moetier::actors
