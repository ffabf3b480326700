#include "actors/control/worker_shell.hpp"

#include <variant>

#include "actors/control/told_log_level.hpp"

namespace moetier::actors {
namespace {

// Counts are copied from the engine several times a second; progress at every tick.
constexpr std::uint32_t k_ticks_per_count = 4;

log_level level_of(workers::log_event::level l) noexcept {
  switch (l) {
    case workers::log_event::level::debug: return log_level::debug;
    case workers::log_event::level::info: return log_level::info;
    case workers::log_event::level::warn: return log_level::warn;
    case workers::log_event::level::error: return log_level::error;
  }
  return log_level::info;
}

}  // namespace

class worker_shell::doer final {
 public:
  doer(worker_shell& shell, coordinator_link& link) : shell_(shell), link_(link) {}

  bool dropped() const noexcept { return dropped_; }

  void operator()(const workers::send& e) { link_.send(e.body); }
  void operator()(const workers::drop_link&) {
    link_.drop();
    dropped_ = true;
  }
  void operator()(const workers::load_plan& e) { shell_.machinery_.load(e); }
  void operator()(const workers::cancel_load& e) { shell_.machinery_.cancel(e); }
  void operator()(const workers::serve_generation& e) { shell_.machinery_.serve(e); }
  void operator()(const workers::release_pages& e) { shell_.machinery_.release(e); }
  void operator()(const workers::attach_source& e) { shell_.machinery_.attach(e.source); }
  void operator()(const workers::detach_source& e) { shell_.machinery_.detach(e); }
  void operator()(const workers::load_adapter& e) { shell_.machinery_.load_adapter(e.adapter); }
  void operator()(const workers::drop_adapter& e) { shell_.machinery_.drop_adapter(e.adapter); }
  void operator()(const workers::set_log_level& e) {
    shell_.log_.set_level(log_level_of(e.level, shell_.configured_level_));
    shell_.log_.info("log_level", {{"set", log_level_name(shell_.log_.level())}});
  }
  void operator()(const workers::drain_engine&) { shell_.machinery_.drain(); }
  void operator()(const workers::log_event& e) {
    shell_.log_.write(level_of(e.severity), e.event, {{"detail", e.detail}});
  }
  void operator()(const workers::stopped& e) { shell_.machinery_.stopped(e.failed, e.why); }

 private:
  worker_shell& shell_;
  coordinator_link& link_;
  bool dropped_ = false;
};

worker_shell::worker_shell(workers::core_options options, worker_machinery& machinery,
                           event_log& log)
    : core_(std::move(options)),
      machinery_(machinery),
      log_(log),
      configured_level_(log.level()),
      summary_(core_.summary()) {}

void worker_shell::handle(const workers::event& what, coordinator_link& link) {
  doer act(*this, link);
  for (const workers::effect& e : core_.step(what, monotonic_now())) std::visit(act, e);
  // The core learns of every lost link the same way, whoever ended it.
  if (act.dropped()) {
    for (const workers::effect& e : core_.step(workers::link_lost{}, monotonic_now())) {
      std::visit(act, e);
    }
  }
  const std::lock_guard lock(summary_mutex_);
  summary_ = core_.summary();
  log_.stand(summary_.epoch, summary_.generation);
}

void worker_shell::tick(coordinator_link& link) {
  handle(machinery_.progress(ticks_++ % k_ticks_per_count == 0), link);
  handle(workers::time_passed{}, link);
}

workers::worker_summary worker_shell::summary() const {
  const std::lock_guard lock(summary_mutex_);
  return summary_;
}

}  // namespace moetier::actors
