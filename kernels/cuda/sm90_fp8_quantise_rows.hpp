#pragma once
// The row quantiser on an NVIDIA device, as the host sees it: rows by tile table into tiled E4M3
// codes and scales, equal in bits to kernels/quant/row_quantiser.hpp. Its twin is
// reference::gather_rows() of format fp8. One launch; it never allocates, waits or traps.
//
// Thread: engine (the owner of the stream).

#include "kernels/cuda/gather_rows_launch.hpp"
#include "kernels/cuda/launch.hpp"

namespace moetier::kernels::cuda {

// Refused unless can_gather_rows(). rows_cap 0: ok without a launch.
launch_status quantise_rows(const gather_rows_args& args, const device_size& device,
                            void* stream) noexcept;

}  // namespace moetier::kernels::cuda
