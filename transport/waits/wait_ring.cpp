#include "transport/waits/wait_ring.hpp"

#include <algorithm>

namespace moetier::transport {
namespace {

using words = std::array<std::uint64_t, 7>;

words packed(const wait_record& w) noexcept {
  return {w.ended,
          std::uint64_t{w.session.value} << 32 | std::uint64_t{w.layer.value} << 16 | w.peer,
          w.step,
          std::uint64_t{w.micro_batch} << 48 | std::uint64_t{w.chunk} << 32 |
              std::uint64_t{w.attempt} << 8 | static_cast<std::uint8_t>(w.outcome),
          w.bytes_due,
          w.bytes_seen,
          w.age};
}

wait_record unpacked(const words& p) noexcept {
  return {.ended = p[0],
          .peer = static_cast<std::uint16_t>(p[1]),
          .session = session_id(static_cast<std::uint32_t>(p[1] >> 32)),
          .step = p[2],
          .layer = layer_id(static_cast<std::uint16_t>(p[1] >> 16)),
          .micro_batch = static_cast<std::uint16_t>(p[3] >> 48),
          .chunk = static_cast<std::uint16_t>(p[3] >> 32),
          .attempt = static_cast<std::uint8_t>(p[3] >> 8),
          .outcome = static_cast<status>(p[3] & 0xff),
          .bytes_due = p[4],
          .bytes_seen = p[5],
          .age = p[6]};
}

}  // namespace

wait_ring::wait_ring() : entries_(std::make_unique<entry[]>(k_waits_kept)) {
  static_assert(std::tuple_size_v<words> == k_words && sizeof(entry) == 64);
}

void wait_ring::record(const wait_record& wait) noexcept {
  const std::uint64_t n = next_.fetch_add(1, std::memory_order_relaxed);
  entry& e = entries_[n % k_waits_kept];
  // Whoever still writes here is a whole round late, or we are: one of the two leaves its own out.
  std::uint64_t before = e.sequence.load(std::memory_order_relaxed);
  if (before % 2 != 0 || before > 2 * n ||
      !e.sequence.compare_exchange_strong(before, 2 * n + 1, std::memory_order_acquire)) {
    return;
  }
  // In this order for a reader too: who sees a word of this wait sees the odd number.
  const words all = packed(wait);
  for (std::size_t i = 0; i < k_words; ++i) e.words[i].store(all[i], std::memory_order_release);
  e.sequence.store(2 * n + 2, std::memory_order_release);
}

std::vector<wait_record> wait_ring::newest() const {
  struct numbered {
    std::uint64_t n;
    wait_record wait;
  };
  std::vector<numbered> found;
  found.reserve(k_waits_kept);
  for (std::size_t i = 0; i < k_waits_kept; ++i) {
    const entry& e = entries_[i];
    const std::uint64_t before = e.sequence.load(std::memory_order_acquire);
    if (before == 0 || before % 2 != 0) continue;
    words all;
    for (std::size_t w = 0; w < k_words; ++w) all[w] = e.words[w].load(std::memory_order_acquire);
    if (e.sequence.load(std::memory_order_relaxed) == before)
      found.push_back({before, unpacked(all)});
  }
  std::ranges::sort(found, {}, &numbered::n);
  std::vector<wait_record> waits;
  waits.reserve(found.size());
  for (const numbered& f : found) waits.push_back(f.wait);
  return waits;
}

}  // namespace moetier::transport
