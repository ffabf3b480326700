#pragma once
// The event loop under Cap'n Proto RPC, for the client's link and the coordinator's server: KJ's
// loop over an epoll descriptor of our own. KJ's own Unix port sets the process's SIGPIPE to
// "ignore" when it is made; a client library must not touch its host's signals, so this port never
// does and sockets are written with MSG_NOSIGNAL (rpc_stream.hpp).
//
// One object per thread, made, run and destroyed there. Other threads reach it by post() alone.
// Thread: kj (its own), but post(): any.

#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include <kj/async.h>
#include <kj/io.h>
#include <kj/timer.h>

#include "schemas/base/time.hpp"

namespace moetier::client {

// Readiness of one descriptor, edge triggered: call the system until it says EAGAIN, then wait.
class fd_readiness {
 public:
  virtual ~fd_readiness() = default;
  virtual kj::Promise<void> readable() = 0;
  virtual kj::Promise<void> writable() = 0;
};

// How other threads reach a loop, also one that may be gone by then. Thread: any.
class loop_mail final {
 public:
  // Has `job` run on the loop's thread, in order; false if the loop is gone. Jobs must not throw or
  // block; those that were not run when the loop ends are destroyed unrun.
  bool post(std::function<void()> job);

 private:
  friend class rpc_loop;
  std::mutex mutex_;
  std::vector<std::function<void()>> jobs_;
  int event_ = -1;  // wakes the loop; -1: the loop is gone
};

class rpc_loop final : private kj::EventPort {
 public:
  // Throws a kj::Exception when the system has no descriptors left.
  rpc_loop();
  ~rpc_loop() noexcept(false);
  KJ_DISALLOW_COPY(rpc_loop);

  kj::WaitScope& scope() { return scope_; }
  kj::Timer& timer() { return timer_; }
  kj::Promise<void> delay(duration_ns length);

  // Requires: `fd` is non-blocking and stays open while the result lives.
  kj::Own<fd_readiness> observe(int fd);

  // Thread: any.
  void post(std::function<void()> job) { mail_->post(std::move(job)); }
  std::shared_ptr<loop_mail> mail() const { return mail_; }

  // Runs jobs and promises until `until` is done. Called once, by the owner.
  void run(kj::Promise<void> until);

 private:
  class observed;

  bool wait() override;
  bool poll() override;
  void wake() const override;
  bool take_events(int timeout_ms);
  kj::Promise<void> run_jobs();

  const kj::AutoCloseFd epoll_;
  const kj::AutoCloseFd event_;
  kj::TimerImpl timer_;
  kj::EventLoop loop_;
  kj::WaitScope scope_;
  kj::Own<kj::PromiseFulfiller<void>> jobs_waiting_;
  std::shared_ptr<loop_mail> mail_;
};

}  // namespace moetier::client
