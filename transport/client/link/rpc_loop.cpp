#include "transport/client/link/rpc_loop.hpp"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <utility>

#include <kj/debug.h>

#include "schemas/base/assert.hpp"
#include "transport/client/link/limits.hpp"

namespace moetier::client {
namespace {

kj::TimePoint clock_now() { return kj::systemPreciseMonotonicClock().now(); }

kj::AutoCloseFd new_epoll() {
  int fd = -1;
  KJ_SYSCALL(fd = epoll_create1(EPOLL_CLOEXEC));
  return kj::AutoCloseFd(fd);
}

kj::AutoCloseFd new_event() {
  int fd = -1;
  KJ_SYSCALL(fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  return kj::AutoCloseFd(fd);
}

}  // namespace

class rpc_loop::observed final : public fd_readiness {
 public:
  observed(rpc_loop& loop, int fd) : loop_(loop), fd_(fd) {
    epoll_event wish{};
    wish.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
    wish.data.ptr = this;
    KJ_SYSCALL(epoll_ctl(loop_.epoll_, EPOLL_CTL_ADD, fd_, &wish));
  }
  ~observed() noexcept override { epoll_ctl(loop_.epoll_, EPOLL_CTL_DEL, fd_, nullptr); }

  kj::Promise<void> readable() override { return wait_for(readable_); }
  kj::Promise<void> writable() override { return wait_for(writable_); }

  void happened(std::uint32_t events) {
    if (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) fire(readable_);
    if (events & (EPOLLOUT | EPOLLHUP | EPOLLERR)) fire(writable_);
  }

 private:
  // Reading and writing wait apart, but inside TLS either may wait for either: two places each.
  using fulfiller = kj::Own<kj::PromiseFulfiller<void>>;
  using places = std::array<fulfiller, 2>;

  static kj::Promise<void> wait_for(places& all) {
    auto pair = kj::newPromiseAndFulfiller<void>();
    fulfiller* free = nullptr;
    for (fulfiller& place : all) {
      if (place.get() == nullptr || !place->isWaiting()) free = &place;
    }
    MOETIER_ASSERT(free != nullptr);
    *free = kj::mv(pair.fulfiller);
    return kj::mv(pair.promise);
  }
  static void fire(places& all) {
    for (fulfiller& place : all) {
      if (place.get() == nullptr) continue;
      fulfiller due = kj::mv(place);
      due->fulfill();
    }
  }

  rpc_loop& loop_;
  int fd_;
  places readable_;
  places writable_;
};

bool loop_mail::post(std::function<void()> job) {
  const std::lock_guard lock(mutex_);
  if (event_ < 0) return false;
  jobs_.push_back(std::move(job));
  if (jobs_.size() > 1) return true;  // the first one has woken it
  const std::uint64_t one = 1;
  // A full counter already wakes; nothing else can fail here.
  [[maybe_unused]] const auto written = write(event_, &one, sizeof one);
  return true;
}

rpc_loop::rpc_loop()
    : epoll_(new_epoll()),
      event_(new_event()),
      timer_(clock_now()),
      loop_(*this),
      scope_(loop_),
      mail_(std::make_shared<loop_mail>()) {
  epoll_event wish{};
  wish.events = EPOLLIN;
  wish.data.ptr = nullptr;  // the event descriptor itself
  KJ_SYSCALL(epoll_ctl(epoll_, EPOLL_CTL_ADD, event_, &wish));
  mail_->event_ = event_;
}

rpc_loop::~rpc_loop() noexcept(false) {
  std::vector<std::function<void()>> unrun;
  {
    const std::lock_guard lock(mail_->mutex_);
    mail_->event_ = -1;
    unrun.swap(mail_->jobs_);
  }
  unrun.clear();  // here, on the loop's thread, while the loop is whole
}

kj::Promise<void> rpc_loop::delay(duration_ns length) {
  const auto bounded = static_cast<std::int64_t>(std::min(length, k_deadline_max));
  // From the clock, not from the last wake-up: a loop that was busy must not shorten a limit.
  return timer_.atTime(clock_now() + bounded * kj::NANOSECONDS);
}

kj::Own<fd_readiness> rpc_loop::observe(int fd) { return kj::heap<observed>(*this, fd); }

void rpc_loop::run(kj::Promise<void> until) {
  auto jobs = run_jobs().eagerlyEvaluate(
      [](kj::Exception&&) { MOETIER_ASSERT(!"a job threw on the RPC loop"); });
  until.wait(scope_);
}

kj::Promise<void> rpc_loop::run_jobs() {
  std::vector<std::function<void()>> due;
  {
    const std::lock_guard lock(mail_->mutex_);
    due.swap(mail_->jobs_);
  }
  for (auto& job : due) job();
  auto pair = kj::newPromiseAndFulfiller<void>();
  jobs_waiting_ = kj::mv(pair.fulfiller);
  {
    // A job may have come while these ran, and its wake-up may have been read already.
    const std::lock_guard lock(mail_->mutex_);
    if (!mail_->jobs_.empty()) jobs_waiting_->fulfill();
  }
  return pair.promise.then([this] { return run_jobs(); });
}

bool rpc_loop::wait() {
  timer_.advanceTo(clock_now());
  int timeout_ms = -1;
  KJ_IF_MAYBE (ms, timer_.timeoutToNextEvent(timer_.now(), kj::MILLISECONDS, 3'600'000)) {
    timeout_ms = static_cast<int>(*ms);
  }
  return take_events(timeout_ms);
}

bool rpc_loop::poll() { return take_events(0); }

void rpc_loop::wake() const {
  const std::uint64_t one = 1;
  // A full counter already wakes; nothing else can fail here.
  [[maybe_unused]] const auto written = write(event_, &one, sizeof one);
}

bool rpc_loop::take_events(int timeout_ms) {
  std::array<epoll_event, 64> events;
  const int count = epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), timeout_ms);
  bool woken = false;
  for (int i = 0; i < count; ++i) {
    const epoll_event& e = events[static_cast<std::size_t>(i)];
    if (e.data.ptr != nullptr) {
      static_cast<observed*>(e.data.ptr)->happened(e.events);
      continue;
    }
    std::uint64_t ignored = 0;
    [[maybe_unused]] const auto got = read(event_, &ignored, sizeof ignored);
    woken = true;
    if (jobs_waiting_.get() != nullptr) jobs_waiting_->fulfill();
  }
  timer_.advanceTo(clock_now());
  return woken;
}

}  // namespace moetier::client
