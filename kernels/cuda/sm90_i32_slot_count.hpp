#pragma once
// The slot count on an NVIDIA device, as the host sees it: the twin of reference::count_slots with
// the same signature and the same result. It enqueues on the stream of `args` and returns; it never
// allocates, waits or traps. What it counts and what it bounds: kernels/reference/slot_count.hpp.
//
// Thread: engine (the owner of the stream).

#include "kernels/reference/slot_count.hpp"

namespace moetier::kernels::cuda {

slot_count_status count_slots(const slot_count_args& args) noexcept;

}  // namespace moetier::kernels::cuda
