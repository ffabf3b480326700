#pragma once
// Around the coordinator's core: gives it events and the clock, and carries out its effects in
// order. What it needs of the world comes in as interfaces, so it knows no actor; the actor hands
// it messages and lends it its links. The record is written in place: an fsync of some milliseconds
// at an epoch or a plan, before anything that depends on it is sent.
//
// Thread: owner (the coordinator actor), but view, view_age: any.

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "actors/log/event_log.hpp"
#include "coordinator/control_port.hpp"
#include "coordinator/core/core.hpp"

namespace moetier::actors {

class worker_links {
 public:
  virtual ~worker_links() = default;
  virtual void send(coordinator::link_number link, const control::message& body) = 0;
  virtual void cut(coordinator::link_number link) = 0;
};

struct coordinator_world {
  // Compare-and-set on the epoch, durable when it returns. reason::state_unusable: the disk failed.
  std::function<expected<void>(epoch_number expected_epoch, const coordinator::record& value)>
      write_record;
  std::function<void(bool failed, reason cause, const std::string& why)> on_stopped;
  client::router_source router{};  // any thread
};

class coordinator_shell final {
 public:
  coordinator_shell(coordinator::core_options options, std::optional<coordinator::record> stored,
                    coordinator_world world, event_log& log);

  void start(coordinator::control_sink& sink, worker_links& links);
  void handle(const coordinator::event& what, worker_links& links);

  std::shared_ptr<const coordinator::tier_view> view() const;
  duration_ns view_age() const;

 private:
  class doer;
  void run(coordinator::effects todo, worker_links& links);
  void picture();

  const duration_ns picture_every_;  // at most so old is what people see
  coordinator::core core_;
  coordinator_world world_;
  event_log& log_;
  const log_level configured_level_;
  coordinator::control_sink* sink_ = nullptr;        // null until start()
  std::deque<coordinator::record_written> written_;  // answers of the disk, not yet told

  mutable std::mutex view_mutex_;
  std::shared_ptr<const coordinator::tier_view> view_;
  time_ns view_made_at_ = 0;
};

}  // namespace moetier::actors
