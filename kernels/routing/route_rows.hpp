#pragma once
// route() over one given table of row kernels and one given routing kernel: what route() calls
// after it has chosen both, and what tests and benches call to compare them bit by bit. Thread:
// any.

#include "kernels/routing/route.hpp"
#include "kernels/routing/routing_limits.hpp"
#include "kernels/routing/row_kernels.hpp"

namespace moetier::kernels {

struct route_output {
  std::span<std::int32_t> ids;
  std::span<float> weights;
  std::span<std::uint8_t> flags{};  // empty: the first bad row fails the call
};

// The table for this machine.
const row_kernels& widest_row_kernels() noexcept;

// As route() or, with flags, route_flagging(). Requires: a machine that runs `rows`; `kernel` is
// generic or what choose_kernel() answers.
expected<void> route_rows(const row_kernels& rows, routing_kernel kernel,
                          const routing_params& params, const layer_routing& layer,
                          const route_input& input, const route_output& output);

}  // namespace moetier::kernels
