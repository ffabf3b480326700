#pragma once
// The weighted sum of each row's entries as it reads: the twin of cuda::combine_rows() over host
// memory, equal to it in bits.
//
// Thread: engine (one call at a time per output).

#include "kernels/cuda/combine_launch.hpp"
#include "kernels/cuda/launch.hpp"

namespace moetier::kernels::reference {

cuda::launch_status combine_rows(const cuda::combine_args& args);

}  // namespace moetier::kernels::reference
