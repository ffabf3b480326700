#pragma once
// A histogram with fixed bounds: how often a value fell at or below each of them, how often above
// all, and the sum. One thread adds, any thread reads; adding is a scan over at most 15 bounds and
// two relaxed stores, without lock, allocation or system call, so it may stand on a layer's path. A
// reading is no instant: values added while it is taken may be in its sum and not in its counts, or
// the other way round, and the next reading has both.
//
// A value is a whole number (nanoseconds, rows); what it means, and the unit in which it is shown,
// is the owner's matter. Thread: add: owner; read: any.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace moetier {

inline constexpr std::size_t k_histogram_bounds_max = 15;

// What a histogram has seen, as a value; readings of equal bounds add up.
struct histogram_reading {
  std::vector<std::uint64_t> bounds;  // upper, inclusive, rising
  std::vector<std::uint64_t> counts;  // per bound, then one for what lies above; not cumulative
  std::uint64_t sum = 0;

  std::uint64_t count() const noexcept;
  // The least bound at or below which at least `share` of the values lie; 0 of an empty one, and
  // the last bound where they lie above it. Requires: 0 < share <= 1.
  std::uint64_t quantile(double share) const noexcept;
  // Requires: equal bounds, or one of both is empty.
  histogram_reading& operator+=(const histogram_reading& other);

  bool operator==(const histogram_reading&) const = default;
};

class histogram final {
 public:
  // Requires: 1 to k_histogram_bounds_max bounds, rising.
  explicit histogram(std::span<const std::uint64_t> bounds) noexcept;
  histogram(const histogram&) = delete;
  histogram& operator=(const histogram&) = delete;

  void add(std::uint64_t value) noexcept {
    std::size_t at = 0;
    while (at < size_ && value > bounds_[at]) ++at;
    raise(counts_[at], 1);
    raise(sum_, value);
  }

  histogram_reading read() const;

 private:
  // The only writer needs no locked addition.
  static void raise(std::atomic<std::uint64_t>& of, std::uint64_t by) noexcept {
    of.store(of.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
  }

  std::size_t size_ = 0;
  std::array<std::uint64_t, k_histogram_bounds_max> bounds_{};
  std::array<std::atomic<std::uint64_t>, k_histogram_bounds_max + 1> counts_{};
  std::atomic<std::uint64_t> sum_{0};
};

// Bounds in nanoseconds that serve most durations here, from a kernel to a lost deadline. 14, 12
// and 10: as many as a family's number of label values can afford.
inline constexpr std::array<std::uint64_t, 14> k_stage_bounds_ns{
    1'000,   2'000,   5'000,     10'000,    20'000,    50'000,     100'000,
    200'000, 500'000, 1'000'000, 2'000'000, 5'000'000, 20'000'000, 100'000'000};
inline constexpr std::array<std::uint64_t, 12> k_call_bounds_ns{
    20'000,    50'000,     100'000,    200'000,     500'000,     1'000'000,
    2'000'000, 10'000'000, 50'000'000, 200'000'000, 500'000'000, 2'000'000'000};
inline constexpr std::array<std::uint64_t, 10> k_event_bounds_ns{
    1'000'000,   2'000'000,   5'000'000,   20'000'000,    50'000'000,
    100'000'000, 300'000'000, 600'000'000, 1'000'000'000, 5'000'000'000};
// Rows, experts, sessions: things that are counted.
inline constexpr std::array<std::uint64_t, 10> k_count_bounds{1,   4,   16,  32,   64,
                                                              128, 256, 512, 1024, 4096};
inline constexpr std::array<std::uint64_t, 5> k_session_bounds{1, 2, 4, 8, 16};

}  // namespace moetier
