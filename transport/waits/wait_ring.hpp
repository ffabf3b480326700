#pragma once
// The flight recorder: the newest waits of one process, each with whom it was for, how much came
// and how long it took. Fixed memory, a cache line an entry; writing takes no lock, allocates
// nothing and never waits, so it may stand on a layer's path. Several threads may write and one
// that was overtaken by a whole round leaves its entry out. Thread: any.

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "schemas/base/ids.hpp"
#include "schemas/base/status.hpp"
#include "schemas/base/time.hpp"

namespace moetier::transport {

struct wait_record {
  time_ns ended = 0;       // when the wait was over
  std::uint16_t peer = 0;  // worker for a source, source for a worker
  session_id session{};
  std::uint64_t step = 0;
  layer_id layer{};
  std::uint16_t micro_batch = 0;
  std::uint16_t chunk = 0;
  std::uint8_t attempt = 0;
  status outcome = status::ok;
  std::uint64_t bytes_due = 0;
  std::uint64_t bytes_seen = 0;
  duration_ns age = 0;  // from its beginning to its end

  bool operator==(const wait_record&) const = default;
};

class wait_ring final {
 public:
  static constexpr std::size_t k_waits_kept = 4096;

  wait_ring();
  void record(const wait_record& wait) noexcept;
  std::vector<wait_record> newest() const;  // oldest first; without entries that are being written
  std::uint64_t recorded() const noexcept { return next_.load(std::memory_order_relaxed); }

 private:
  static constexpr std::size_t k_words = 7;
  struct alignas(64) entry {
    // 2n + 1 while wait n is being written, 2n + 2 once it is whole; 0 = never written.
    std::atomic<std::uint64_t> sequence{0};
    std::array<std::atomic<std::uint64_t>, k_words> words{};
  };

  std::unique_ptr<entry[]> entries_;
  std::atomic<std::uint64_t> next_{0};
};

}  // namespace moetier::transport
