#include "coordinator/rpc/rpc_meter.hpp"

#include <algorithm>

namespace moetier::coordinator {

std::string_view rpc_method_name(std::size_t kind) noexcept {
  return kind < k_rpc_methods.size() ? k_rpc_methods[kind] : "admin";
}

std::string_view refusal_name(refusal r) noexcept {
  switch (r) {
    case refusal::overloaded: return "overloaded";
    case refusal::denied: return "denied";
    case refusal::invalid: return "invalid";
    case refusal::unavailable: return "unavailable";
    case refusal::other: return "other";
  }
  return "other";
}

refusal refusal_of(status code) noexcept {
  switch (code) {
    case status::overloaded: return refusal::overloaded;
    case status::denied: return refusal::denied;
    case status::invalid:
    case status::bad_state:
    case status::unsupported:
    case status::version:
    case status::model_mismatch: return refusal::invalid;
    case status::unavailable:
    case status::timeout:
    case status::stale_generation:
    case status::session_lost: return refusal::unavailable;
    default: return refusal::other;
  }
}

void rpc_meter::count(std::string_view method, duration_ns took) noexcept {
  if (method == "watch") return;
  const auto found = std::find(k_rpc_methods.begin(), k_rpc_methods.end(), method);
  methods_[static_cast<std::size_t>(found - k_rpc_methods.begin())].add(took);
}

rpc_reading rpc_meter::read() const {
  rpc_reading r;
  for (std::size_t m = 0; m < k_rpc_method_kinds; ++m) r.methods[m] = methods_[m].read();
  for (std::size_t i = 0; i < k_refusals; ++i)
    r.refused[i] = refused_[i].load(std::memory_order_relaxed);
  return r;
}

}  // namespace moetier::coordinator
