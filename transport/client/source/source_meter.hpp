#pragma once
// What a source has asked and what came of it: how long steps and the parts of a call took, how
// calls ended. The session counts, anybody reads; counting takes no lock and no memory.
//
// Parts of a call, which add up to it: `route` (checks, routing, packing, sending), `wire` (from
// there until the last return was in, less what its worker says that it held the rows), `wait`
// (that part), `sum`. Thread: owner of the session, but read(): any.

#include <array>
#include <atomic>
#include <cstdint>
#include <string_view>

#include "schemas/base/histogram.hpp"
#include "schemas/base/reason.hpp"
#include "schemas/base/status.hpp"
#include "schemas/base/time.hpp"

namespace moetier::client {

struct call_times;

enum class round_part : std::uint8_t { route, wire, wait, sum };
inline constexpr std::size_t k_round_parts = 4;
std::string_view round_part_name(round_part p) noexcept;

// What made a router's row, or a caller's choice, unusable.
enum class route_fault : std::uint8_t { nonfinite, starved, range, duplicate };
inline constexpr std::size_t k_route_faults = 4;
std::string_view route_fault_name(route_fault f) noexcept;

// Ends of a ticket; what is none of them counts as internal.
inline constexpr std::array k_ticket_ends{
    status::ok,          status::degraded,   status::timeout,   status::stale_generation,
    status::unavailable, status::overloaded, status::cancelled, status::session_lost,
    status::corrupt,     status::device,     status::internal};

struct source_reading {
  histogram_reading step;  // from step_begin to a step_end that failed nothing
  std::array<histogram_reading, k_round_parts> parts;
  std::array<std::uint64_t, k_ticket_ends.size()> tickets{};
  std::array<std::uint64_t, k_route_faults> route_faults{};  // calls
  std::uint64_t replays = 0;
  duration_ns stall = 0;  // of calls that waited for a bank before all of them was sent

  source_reading& operator+=(const source_reading& other);
};

class source_meter final {
 public:
  void count_step(duration_ns took) noexcept { step_.add(took); }
  void count_call(const call_times& times) noexcept;  // that ended well
  void count_failure(status end, std::uint32_t replays) noexcept;
  // Of a call that was refused before it was sent; no effect unless its routing was at fault.
  void count_refusal(reason why) noexcept;
  void count_stall(duration_ns waited) noexcept { raise(stall_, waited); }
  source_reading read() const;

 private:
  static void raise(std::atomic<std::uint64_t>& of, std::uint64_t by) noexcept {
    of.store(of.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
  }

  histogram step_{k_call_bounds_ns};
  std::array<histogram, k_round_parts> parts_{
      histogram(k_call_bounds_ns), histogram(k_call_bounds_ns), histogram(k_call_bounds_ns),
      histogram(k_call_bounds_ns)};
  std::array<std::atomic<std::uint64_t>, k_ticket_ends.size()> tickets_{};
  std::array<std::atomic<std::uint64_t>, k_route_faults> route_faults_{};
  std::atomic<std::uint64_t> replays_{0};
  std::atomic<std::uint64_t> stall_{0};
};

}  // namespace moetier::client
