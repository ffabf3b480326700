#pragma once
// Around the worker's core: gives it events and the clock, and carries out its effects in order.
// Link, loader and engine come in as interfaces, so it knows no actor, store or thread.
//
// Thread: owner (the expert_worker actor), but summary(): any.

#include <memory>
#include <mutex>

#include "actors/log/event_log.hpp"
#include "workers/core/core.hpp"

namespace moetier::actors {

class coordinator_link {
 public:
  virtual ~coordinator_link() = default;
  virtual void send(const control::message& body) = 0;
  virtual void drop() = 0;
};

// What the shell asks of the worker's other threads; each call hands over and returns at once.
// Answers come back as events.
class worker_machinery {
 public:
  virtual ~worker_machinery() = default;
  virtual void load(const workers::load_plan& plan) = 0;
  virtual void cancel(const workers::cancel_load& plan) = 0;
  virtual void serve(const workers::serve_generation& generation) = 0;
  virtual void release(const workers::release_pages& pages) = 0;
  virtual void attach(const control::source_attachment& source) = 0;
  virtual void detach(const workers::detach_source& source) = 0;
  virtual void load_adapter(const control::held_adapter& adapter) = 0;
  virtual void drop_adapter(std::uint32_t adapter) = 0;
  virtual void drain() = 0;
  virtual void stopped(bool failed, const std::string& why) = 0;
  virtual workers::engine_progress progress(bool with_counts) = 0;
};

class worker_shell final {
 public:
  worker_shell(workers::core_options options, worker_machinery& machinery, event_log& log);

  void handle(const workers::event& what, coordinator_link& link);
  // Engine's progress first, then time.
  void tick(coordinator_link& link);

  workers::worker_summary summary() const;

 private:
  class doer;

  workers::core core_;
  worker_machinery& machinery_;
  event_log& log_;
  const log_level configured_level_;
  std::uint32_t ticks_ = 0;

  mutable std::mutex summary_mutex_;
  workers::worker_summary summary_;
};

}  // namespace moetier::actors
