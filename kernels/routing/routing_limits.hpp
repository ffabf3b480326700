#pragma once
// Which routing kernel serves a layer: one table of the fused kernels' limits, read by route() and
// by reports. Outside the limits, and for methods without a fused form, the generic kernel runs;
// its ids and weights are the same in bits. Thread: any (values).

#include <cstdint>
#include <string>
#include <string_view>

#include "kernels/routing/route.hpp"

namespace moetier::kernels {

enum class routing_kernel : std::uint8_t { softmax_top_k, single_group, grouped, generic };

std::string_view routing_kernel_name(routing_kernel kernel) noexcept;  // "softmax_top_k"

struct kernel_choice {
  routing_kernel kernel = routing_kernel::generic;
  std::string_view fallback_reason{};  // empty, "limit" or "no_fused_form"
  std::string_view limit{};            // with "limit": what is too large ("experts", "top_k", ...)
  std::uint32_t value = 0;             // ... how large it is
  std::uint32_t most = 0;              // ... and how large it may be

  bool operator==(const kernel_choice&) const = default;
};

// Pure. `hashed`: the layer chooses by token id. Requires: check_routing(params) holds.
kernel_choice choose_kernel(const routing_params& params, bool hashed = false) noexcept;

// "grouped", "generic (limit: top_k 9 > 8)", "generic (no_fused_form)".
std::string to_string(const kernel_choice& choice);

}  // namespace moetier::kernels
