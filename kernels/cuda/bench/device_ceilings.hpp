#pragma once
// What this device can do at best, measured in the run whose figures it is held against: reading,
// copying, multiplying, and the gap between two nodes of a graph.
//
// Thread: owner.

#include <string>

#include "kernels/cuda/bench/bench_stream.hpp"

namespace moetier::kernels::cuda::bench {

struct device_ceilings {
  double read_tb_s = 0;  // by the read probe over 4 GiB
  double copy_tb_s = 0;  // bytes read and written
  double bf16_tf = 0;    // 0 = not measured
  double fp8_tf = 0;
  double node_gap_us = 0;
  std::string note{};  // why one is missing
};

expected<device_ceilings> measure_ceilings(bench_stream& stream);

}  // namespace moetier::kernels::cuda::bench
