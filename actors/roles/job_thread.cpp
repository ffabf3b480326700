#include "actors/roles/job_thread.hpp"

#include <utility>

namespace moetier::roles {

job_thread::job_thread() : thread_([this] { run(); }) {}

job_thread::~job_thread() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  work_.notify_one();
  thread_.join();
}

void job_thread::post(job j) {
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(j));
  }
  work_.notify_one();
}

void job_thread::run() {
  for (;;) {
    job next;
    {
      std::unique_lock lock(mutex_);
      work_.wait(lock, [this] { return ending_ || !jobs_.empty(); });
      if (ending_) return;
      next = std::move(jobs_.front());
      jobs_.pop_front();
    }
    next();
  }
}

}  // namespace moetier::roles
