#pragma once
// What loading weights took, how it failed, and how full the store is: written by whoever owns the
// store, read by anybody. Thread: owner, but read(): any.

#include <array>
#include <atomic>
#include <cstdint>
#include <string_view>

#include "schemas/base/error.hpp"
#include "schemas/base/histogram.hpp"
#include "schemas/base/time.hpp"
#include "workers/store/page_pool.hpp"

namespace moetier::workers {

enum class load_fault : std::uint8_t {
  mismatch,  // a tensor that is missing, of another shape or of other bytes than expected
  file,      // unreadable or malformed
  other
};
inline constexpr std::size_t k_load_faults = 3;
std::string_view load_fault_name(load_fault f) noexcept;
load_fault load_fault_of(const error& why) noexcept;

struct load_reading {
  histogram_reading took;  // per expert: read, packed, sent to its page
  std::array<std::uint64_t, k_load_faults> faults{};
  std::array<std::uint64_t, k_page_states> pages{};  // by state
  std::uint64_t page_bytes = 0;                      // of one page
};

class load_meter final {
 public:
  void count_load(duration_ns took) noexcept { took_.add(took); }
  void count_fault(load_fault f) noexcept {
    faults_[static_cast<std::size_t>(f)].fetch_add(1, std::memory_order_relaxed);
  }
  void set_pages(const page_pool& pool) noexcept;
  load_reading read() const;

 private:
  histogram took_{k_event_bounds_ns};
  std::array<std::atomic<std::uint64_t>, k_load_faults> faults_{};
  std::array<std::atomic<std::uint64_t>, k_page_states> pages_{};
  std::atomic<std::uint64_t> page_bytes_{0};
};

}  // namespace moetier::workers
