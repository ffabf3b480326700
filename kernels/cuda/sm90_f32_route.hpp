#pragma once
// Routing on an NVIDIA device, as the host sees it: logits to ids and weights, equal in bits to
// route_flagging() of kernels/routing, which is its twin. One launch; it never allocates, waits or
// traps.
//
// Thread: engine (the owner of the stream).

#include "kernels/cuda/launch.hpp"
#include "kernels/cuda/route_launch.hpp"

namespace moetier::kernels::cuda {

// Refused unless can_route(). tokens_cap 0: ok without a launch.
launch_status route_rows(const route_args& args, const device_size& device, void* stream) noexcept;

}  // namespace moetier::kernels::cuda
