#pragma once
// Measures one expert layer on the device: a pool of random pages, and for each case the layer's
// time by graph replay, launch by launch, its grouping, the read probe over the same pages, the
// clock, and the fp64 oracle on the same inputs. What is measured, in order, stands in measure().
//
// A graph holds several layers whose weights rotate: active slots, ascending, take the next pages
// of the pool, so that a page is read again only after the whole pool or graph was.
//
// Thread: owner.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernels/cuda/bench/bench_stream.hpp"
#include "kernels/cuda/expert_layer.hpp"

namespace moetier::kernels::cuda::bench {

// Slot ids and weights [rows][k] of one routing, and the slots that it needs, ascending.
struct layer_batch {
  std::vector<std::int32_t> slot_ids;
  std::vector<float> weights;
  std::vector<std::uint32_t> active;
};

struct layer_case {
  std::uint32_t rows = 0;
  std::uint32_t k = 0;
  std::uint32_t layers = 2;  // of one graph
  std::uint32_t repeat = 25;
  std::uint64_t seed = 1;
  std::span<const layer_batch> batches;
};

// Where tensor cores are busy throughout, a chip that runs on and on is bound by its power and
// slows down; after a rest it is not yet. Calls from this many rows on are also measured rested.
inline constexpr std::uint32_t k_rested_rows_min = 1024;
inline constexpr int k_rest_ms = 20;

struct oracle_verdict {
  bool pass = false;
  double norm = 0;   // |out - truth| / |truth| over all sampled rows
  double worst = 0;  // largest |out - truth| / rms(truth)
  double norm_max = 0;
  double worst_max = 0;  // 0 = not bounded
  std::uint32_t rows = 0;
};

struct layer_figures {
  time_spread layer;
  time_spread probe;
  double eager_us = 0;
  double rested_us = 0;  // each replay after k_rest_ms of idleness; 0 = not measured
  double sort_us = 0;
  double sm_mhz = 0;
  launch_stages stages{};  // of the layer, each alone
  oracle_verdict oracle;
  std::string launch;  // what the layer says of its own launch
};

class layer_bench final {
 public:
  // Fills the pool. Requires: the layer's pages are those of page_layout_of().
  static expected<std::unique_ptr<layer_bench>> open(bench_stream& stream, const ExpertLayer& layer,
                                                     std::uint32_t slots, std::uint64_t seed);

  expected<layer_figures> measure(const layer_case& wanted);

 private:
  layer_bench(bench_stream& stream, const ExpertLayer& layer);

  bench_stream& stream_;
  const ExpertLayer& layer_;
  gemm_shape shape_;
  device_block pool_;
  std::vector<std::byte*> pages_;  // as many as slots
};

}  // namespace moetier::kernels::cuda::bench
