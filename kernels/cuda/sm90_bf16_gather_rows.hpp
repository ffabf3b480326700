#pragma once
// The gather of rows by tile table into tiled bf16 activations on an NVIDIA device, as the host
// sees it; f32 rows are rounded to nearest even. Its twin is reference::gather_rows() of format
// bf16. One launch; it never allocates, waits or traps.
//
// Thread: engine (the owner of the stream).

#include "kernels/cuda/gather_rows_launch.hpp"
#include "kernels/cuda/launch.hpp"

namespace moetier::kernels::cuda {

// Refused unless can_gather_rows(). rows_cap 0: ok without a launch.
launch_status gather_rows(const gather_rows_args& args, const device_size& device,
                          void* stream) noexcept;

}  // namespace moetier::kernels::cuda
