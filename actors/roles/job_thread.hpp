#pragma once
// A thread that does jobs one after the other, in the order in which they were posted. Its end
// waits for the job under way; those behind it are dropped. Thread: any (post).

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace moetier::roles {

class job_thread final {
 public:
  using job = std::function<void()>;

  job_thread();
  ~job_thread();
  job_thread(const job_thread&) = delete;
  job_thread& operator=(const job_thread&) = delete;

  void post(job j);

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable work_;
  std::deque<job> jobs_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace moetier::roles
