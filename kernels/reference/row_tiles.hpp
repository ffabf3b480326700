#pragma once
// The grouping step as it reads: entries of each slot in ascending number, cut into tiles. The twin
// of cuda::make_row_tiles() over host memory; the scratch is not used. The status word keeps the
// first bad entry in ascending number, where the device keeps any one.
//
// Thread: engine (one call at a time per table).

#include "kernels/cuda/launch.hpp"
#include "kernels/cuda/row_tiles_launch.hpp"

namespace moetier::kernels::reference {

cuda::launch_status make_row_tiles(const cuda::row_tiles_args& args) noexcept;

}  // namespace moetier::kernels::reference
