#pragma once
// The rows of `bench kernels --part routing` about the router's own product. Thread: owner.

#include "actors/cli/bench_kernels.hpp"

namespace moetier::cli {

std::vector<kernel_figures> bench_router_logits(const kernel_bench_options& options);

}  // namespace moetier::cli
