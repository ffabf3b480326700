#include "kernels/cpu/compute_pool.hpp"

#include <pthread.h>
#include <sched.h>

#include <fmt/core.h>

#include "schemas/base/assert.hpp"
#include "schemas/base/time.hpp"

namespace moetier::kernels {
namespace {

// One wave's stages follow each other within microseconds, while to wake a thread that sleeps takes
// tens of them, and more in a virtual machine.
constexpr duration_ns k_awake = 50 * k_microsecond;

// Returns soon after `word` has become another than `old`; may return before.
void await_change(const std::atomic<std::uint32_t>& word, std::uint32_t old) noexcept {
  const time_ns until = monotonic_now() + k_awake;
  do {
    if (word.load(std::memory_order_acquire) != old) return;
    ::sched_yield();
  } while (monotonic_now() < until);
  word.wait(old, std::memory_order_acquire);
}

}  // namespace

compute_pool::compute_pool(unsigned threads) {
  MOETIER_ASSERT(threads >= 1);
  sleepers_.reserve(threads - 1);
  try {
    for (unsigned lane = 1; lane < threads; ++lane) {
      sleepers_.emplace_back([this, lane] { sleeper_loop(lane); });
      pthread_setname_np(sleepers_.back().native_handle(), fmt::format("compute-{}", lane).c_str());
    }
  } catch (...) {
    stop();
    throw;
  }
}

compute_pool::~compute_pool() { stop(); }

void compute_pool::stop() noexcept {
  stopping_.store(true, std::memory_order_relaxed);
  wake_.fetch_add(1, std::memory_order_release);
  wake_.notify_all();
  for (std::thread& sleeper : sleepers_) sleeper.join();
}

void compute_pool::run(std::uint32_t items, void* context, item_fn call) noexcept {
  if (sleepers_.empty() || items <= 1) {
    for (std::uint32_t item = 0; item < items; ++item) call(context, item, 0);
    return;
  }
  context_ = context;
  call_ = call;
  items_ = items;
  done_.store(0, std::memory_order_relaxed);
  ++job_;
  open_.store(std::uint64_t{job_} << 32 | items, std::memory_order_release);
  wake_.fetch_add(1, std::memory_order_release);
  wake_.notify_all();
  while (take_one(0)) {
  }
  for (std::uint32_t done = done_.load(std::memory_order_acquire); done != items;
       done = done_.load(std::memory_order_acquire))
    await_change(done_, done);
}

// The job number in the claimed word keeps a late thread from taking an item of a job that it has
// not seen: its exchange fails, and the acquire of a successful one shows it the job's words.
bool compute_pool::take_one(unsigned lane) noexcept {
  std::uint64_t open = open_.load(std::memory_order_acquire);
  do {
    if (static_cast<std::uint32_t>(open) == 0) return false;
  } while (!open_.compare_exchange_weak(open, open - 1, std::memory_order_acq_rel,
                                        std::memory_order_acquire));
  const std::uint32_t items = items_;
  call_(context_, items - static_cast<std::uint32_t>(open), lane);
  if (done_.fetch_add(1, std::memory_order_acq_rel) + 1 == items) done_.notify_one();
  return true;
}

void compute_pool::sleeper_loop(unsigned lane) noexcept {
  for (;;) {
    const std::uint32_t seen = wake_.load(std::memory_order_acquire);
    if (stopping_.load(std::memory_order_relaxed)) return;
    while (take_one(lane)) {
    }
    await_change(wake_, seen);
  }
}

}  // namespace moetier::kernels
