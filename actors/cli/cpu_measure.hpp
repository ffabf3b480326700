#pragma once
// The measurements of `bench kernels --part cpu`: one product, or one whole expert, for several
// numbers of rows. Each takes its own memory: weights that together exceed the caches, for a peer
// as well. Thread: owner; a caller is pinned to its processor while it measures.

#include <cstdint>
#include <span>
#include <vector>

#include "actors/cli/bench_peer.hpp"
#include "actors/cli/cpu_figures.hpp"

namespace moetier::cli {

struct cpu_measure_options {
  std::uint64_t seed = 1;
  std::uint32_t samples = 120;  // of each figure
  std::size_t ring_bytes = cold_ring_bytes();
};

// Requires: cpu_avx2 runs here; rows are 1 to 64, not empty; sizes are at least 16. May throw
// std::bad_alloc.
std::vector<cpu_figures> measure_products(const product_size& size,
                                          std::span<const std::uint32_t> rows,
                                          const moetier_gemm_peer* peer,
                                          const cpu_measure_options& options);
// H and I; the speed of two threads over one where two processors may be used.
expected<std::vector<cpu_figures>> measure_experts(const product_size& size,
                                                   std::span<const std::uint32_t> rows,
                                                   const cpu_measure_options& options);

}  // namespace moetier::cli
