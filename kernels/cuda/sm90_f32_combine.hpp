#pragma once
// The weighted sum of each row's entries on an NVIDIA device, as the host sees it: the twin of
// reference::combine_rows(), equal to it in bits. One launch, which begins beside the end of the
// launch before it on the stream; it never allocates, waits or traps.
//
// Thread: engine (the owner of the stream).

#include "kernels/cuda/combine_launch.hpp"
#include "kernels/cuda/launch.hpp"

namespace moetier::kernels::cuda {

// Refused unless can_combine_rows(). rows_cap 0: ok without a launch.
launch_status combine_rows(const combine_args& args, const device_size& device,
                           void* stream) noexcept;

}  // namespace moetier::kernels::cuda
