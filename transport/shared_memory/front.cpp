#include "transport/shared_memory/front.hpp"

#include <climits>
#include <ctime>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "transport/shared_memory/peer_process.hpp"

namespace moetier::transport {
namespace {

// Not the private kind: the word is seen from several processes.
void wait_while(std::atomic<std::uint32_t>& word, std::uint32_t value,
                std::chrono::nanoseconds limit) noexcept {
  const auto ns = std::max<std::int64_t>(limit.count(), 0);
  const timespec time{.tv_sec = ns / 1'000'000'000, .tv_nsec = ns % 1'000'000'000};
  syscall(SYS_futex, &word, FUTEX_WAIT, value, &time, nullptr, 0);
}

// Whether the door's claimant has ended.
bool is_of_the_dead(std::uint64_t state) noexcept {
  const auto claimant = peer_process::watch(static_cast<std::uint32_t>(state >> 1));
  return claimant && (*claimant)->has_ended();
}

void wake_all(std::atomic<std::uint32_t>& word) noexcept {
  syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace

// A file of zeroes is a front with all doors free.
expected<std::unique_ptr<front>> front::make() {
  auto block = shared_block::make(sizeof(shown_words));
  if (!block) return unexpected_error(block.error());
  std::unique_ptr<front> self(new front(std::move(*block)));
  self->shown().version = k_version;
  return self;
}

expected<std::unique_ptr<front>> front::open(const block_name& name) {
  auto block = shared_block::open(name);
  if (!block) return unexpected_error(block.error());
  if ((*block)->bytes().size() != sizeof(shown_words))
    return fail(reason::carrier_unavailable, "shared_memory", "the peer is of another release");
  std::unique_ptr<front> self(new front(std::move(*block)));
  if (self->shown().version != k_version)
    return fail(reason::carrier_unavailable, "shared_memory", "the peer is of another release");
  return self;
}

bool front::claim(door& d, std::uint32_t process, std::uint64_t state) noexcept {
  return d.state.compare_exchange_strong(state, claimed_by(process));
}

expected<void> front::offer(const lane_offer& lane) noexcept {
  const std::uint32_t self = lane.lane.process;
  const auto hand_over = [&](door& d) {
    d.offer = lane;
    d.state.store(claimed_by(self) | k_complete, std::memory_order_release);
    shown().offers.fetch_add(1);
    ring();
  };
  for (door& d : shown().doors) {
    if (claim(d, self, k_free)) return hand_over(d), expected<void>{};
  }
  for (door& d : shown().doors) {
    const std::uint64_t state = d.state.load(std::memory_order_acquire);
    if (state != k_free && !is_of_the_dead(state)) continue;
    if (claim(d, self, state)) return hand_over(d), expected<void>{};
  }
  return fail(reason::carrier_unavailable, "shared_memory",
              "the peer has not looked at its last offers; it is stuck or frozen");
}

void front::nudge() noexcept { shown().bell.fetch_add(1); }

// Either this thread sees `sleeping`, or the sleeper sees the bell: both write, then read, in one
// total order.
void front::ring() noexcept {
  nudge();
  if (shown().sleeping.load() != 0) wake_all(shown().bell);
}

bool front::take(lane_offer& out) noexcept {
  const std::uint32_t offers = shown().offers.load(std::memory_order_acquire);
  if (offers == offers_taken_) return false;
  for (door& d : shown().doors) {
    const std::uint64_t state = d.state.load(std::memory_order_acquire);
    if ((state & k_complete) == 0) continue;
    out = d.offer;
    // Another peer may have taken over the door of one that has ended.
    if (std::uint64_t seen = state; d.state.compare_exchange_strong(seen, k_free)) return true;
  }
  offers_taken_ = offers;
  return false;
}

void front::look_at_doors() noexcept {
  offers_taken_ = shown().offers.load(std::memory_order_acquire) - 1;
  for (door& d : shown().doors) {
    std::uint64_t state = d.state.load(std::memory_order_acquire);
    if (state == k_free || (state & k_complete) != 0 || !is_of_the_dead(state)) continue;
    d.state.compare_exchange_strong(state, k_free);
  }
}

void front::sleep(std::uint32_t heard, std::chrono::nanoseconds limit) noexcept {
  shown().sleeping.store(1);
  if (shown().bell.load() == heard) wait_while(shown().bell, heard, limit);
  shown().sleeping.store(0);
}

void front::go() noexcept {
  if (block_->is_own()) shown().gone.store(1, std::memory_order_release);
}

}  // namespace moetier::transport
