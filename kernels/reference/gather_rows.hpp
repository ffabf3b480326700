#pragma once
// Rows by tile table into tiled activations as it reads, element by element through the layout's
// own functions: the twin of cuda::quantise_rows() (fp8) and cuda::gather_rows() (bf16) over host
// memory.
//
// Thread: engine (one call at a time per x).

#include "kernels/cuda/gather_rows_launch.hpp"
#include "kernels/cuda/launch.hpp"

namespace moetier::kernels::reference {

cuda::launch_status gather_rows(const cuda::gather_rows_args& args, cuda::gemm_format format);

}  // namespace moetier::kernels::reference
