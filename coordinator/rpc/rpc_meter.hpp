#pragma once
// How long RPC methods took and why they were refused. A watch is no method here: it lasts as long
// as nothing happens. Thread: count: kj (the server's); read: any.

#include <array>
#include <atomic>
#include <cstdint>
#include <string_view>

#include "schemas/base/histogram.hpp"
#include "schemas/base/status.hpp"
#include "schemas/base/time.hpp"

namespace moetier::coordinator {

// Names as answering() has them; the administrative ones are one, "admin".
inline constexpr std::array<std::string_view, 10> k_rpc_methods{
    "ping",   "info",   "snapshot", "open_session", "resume_session",
    "router", "attach", "forward",  "renew",        "close"};
inline constexpr std::size_t k_rpc_method_kinds = k_rpc_methods.size() + 1;
std::string_view rpc_method_name(std::size_t kind) noexcept;

// Why a call was not admitted, or failed, as coarse as an operator can act on.
enum class refusal : std::uint8_t { overloaded, denied, invalid, unavailable, other };
inline constexpr std::size_t k_refusals = 5;
std::string_view refusal_name(refusal r) noexcept;
refusal refusal_of(status code) noexcept;

struct rpc_reading {
  std::array<histogram_reading, k_rpc_method_kinds> methods;
  std::array<std::uint64_t, k_refusals> refused{};
};

class rpc_meter final {
 public:
  void count(std::string_view method, duration_ns took) noexcept;
  void count_refusal(status code) noexcept {
    refused_[static_cast<std::size_t>(refusal_of(code))].fetch_add(1, std::memory_order_relaxed);
  }
  rpc_reading read() const;

 private:
  std::array<histogram, k_rpc_method_kinds> methods_{
      histogram(k_call_bounds_ns), histogram(k_call_bounds_ns), histogram(k_call_bounds_ns),
      histogram(k_call_bounds_ns), histogram(k_call_bounds_ns), histogram(k_call_bounds_ns),
      histogram(k_call_bounds_ns), histogram(k_call_bounds_ns), histogram(k_call_bounds_ns),
      histogram(k_call_bounds_ns), histogram(k_call_bounds_ns)};
  std::array<std::atomic<std::uint64_t>, k_refusals> refused_{};
};

}  // namespace moetier::coordinator
