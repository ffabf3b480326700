#pragma once
// The grouping step on an NVIDIA device, as the host sees it: the twin of
// reference::make_row_tiles() with the same result. It enqueues one launch, or two above 8192
// entries, and returns; it never allocates, waits or traps, and reads the number of live rows on
// the device alone.
//
// Thread: engine (the owner of the stream).

#include "kernels/cuda/launch.hpp"
#include "kernels/cuda/row_tiles_launch.hpp"

namespace moetier::kernels::cuda {

// Refused unless can_make_row_tiles().
launch_status make_row_tiles(const row_tiles_args& args, void* stream) noexcept;

}  // namespace moetier::kernels::cuda
