#pragma once
// (optional ceiling) The rate of one large square product on random data by cuBLASLt, where that
// library can be opened at run time: nothing of moetier links it. Rates are of dense flops.
//
// Thread: owner.

#include <string>

#include "kernels/cuda/bench/bench_stream.hpp"

namespace moetier::kernels::cuda::bench {

struct matrix_rates {
  double bf16_tf = 0;  // 0 = not measured
  double fp8_tf = 0;
  std::string note;  // why a rate is missing; "" where none is
};

matrix_rates measure_matrix_rates(bench_stream& stream);

}  // namespace moetier::kernels::cuda::bench
