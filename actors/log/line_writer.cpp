#include "actors/log/line_writer.hpp"

#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

#include <poll.h>
#include <pthread.h>
#include <unistd.h>

namespace moetier {
namespace {

constexpr std::chrono::nanoseconds k_wait{line_writer::k_patience};

// False: the descriptor takes it no more (closed, or no space left).
bool put(int descriptor, const std::string& line) {
  std::size_t done = 0;
  while (done < line.size()) {
    const ssize_t n = ::write(descriptor, line.data() + done, line.size() - done);
    if (n > 0) {
      done += static_cast<std::size_t>(n);
    } else if (n < 0 && errno == EAGAIN) {  // somebody else made the shared description so
      pollfd ready{descriptor, POLLOUT, 0};
      ::poll(&ready, 1, -1);
    } else if (n == 0 || errno != EINTR) {
      return false;
    }
  }
  return true;
}

}  // namespace

struct line_writer::state {
  explicit state(int d) : descriptor(d) {}

  const int descriptor;
  std::mutex mutex;
  std::condition_variable came;
  std::condition_variable went;
  std::deque<std::string> lines;  // the first may be under way
  std::size_t bytes = 0;
  std::uint64_t taken = 0;    // lines that were given, but for the dropped ones
  std::uint64_t gone = 0;     // of these, written or failed
  bool stands_still = false;  // somebody waited in vain since the last line went
  bool ended = false;
  std::atomic<std::uint64_t> dropped{0};

  void run() {
    std::unique_lock lock(mutex);
    for (;;) {
      came.wait(lock, [&] { return ended || !lines.empty(); });
      if (lines.empty()) return;
      const std::string& line = lines.front();  // a deque's elements stay where they are
      lock.unlock();
      const bool done = put(descriptor, line);
      lock.lock();
      if (!done) dropped.fetch_add(1, std::memory_order_relaxed);
      bytes -= lines.front().size();
      lines.pop_front();
      ++gone;
      stands_still = false;
      went.notify_all();
    }
  }
};

line_writer::line_writer(int descriptor) : state_(std::make_shared<state>(descriptor)) {
  // Signals are for the threads that wait for them.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread([s = state_] { s->run(); }).detach();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

line_writer::~line_writer() {
  state& s = *state_;
  std::unique_lock lock(s.mutex);
  s.ended = true;
  s.came.notify_one();
  for (std::uint64_t seen = s.gone; s.gone < s.taken; seen = s.gone) {
    if (!s.went.wait_for(lock, k_wait, [&] { return s.gone > seen; })) return;
  }
}

void line_writer::write(std::string line) {
  state& s = *state_;
  std::unique_lock lock(s.mutex);
  if (s.bytes + line.size() > k_bytes_max) {
    s.dropped.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  s.bytes += line.size();
  s.lines.push_back(std::move(line));
  const std::uint64_t mine = ++s.taken;
  s.came.notify_one();
  if (s.stands_still) return;
  if (!s.went.wait_for(lock, k_wait, [&] { return s.gone >= mine; })) s.stands_still = true;
}

std::uint64_t line_writer::dropped() const noexcept {
  return state_->dropped.load(std::memory_order_relaxed);
}

}  // namespace moetier
