#pragma once
// The parts of `bench plan` and their options. Each fills figures by name; nothing here prints.
// Thread: owner.

#include <cstdint>
#include <string>
#include <vector>

#include "schemas/base/error.hpp"

namespace moetier::cli {

struct plan_bench_options {
  std::string part;     // empty = all
  std::string domains;  // safetensors of [layer, expert] totals, one tensor a domain
  std::string trace;    // safetensors of DOMAIN.layerN ids
  std::uint32_t trace_experts = 32;
  std::uint32_t layers = 6;    // of a drifting trace; few differ by 0.01 from many
  std::uint32_t windows = 12;  // judged ones
  std::uint64_t seed = 1;
  std::uint32_t repeat = 15;
  std::string plots;  // folder for SVG files
};

struct bench_shape_of_plan {
  std::uint32_t experts, slots, workers;
  bool uneven = false;  // every second worker has two slots more than the others
};
std::string shape_name(const bench_shape_of_plan& s);

// Ours and the reference greedy on one kind of load, planned from and judged on the same loads.
struct planned_row {
  std::string loads, shape, method;
  std::uint32_t layers = 0;
  double none = 0;                      // balancedness without plan, mean
  double greedy = 0, greedy_worst = 0;  // percent of the bound
  double ours = 0, ours_worst = 0;
  double feasible = 0, feasible_worst = 0;  // ours, percent of the starved bound
  double greedy_61_ms = 0, ours_61_ms = 0;  // planning 61 layers, one core
};

// Ours and the reference greedy over a drifting trace, judged on batches that neither has seen.
struct realised_row {
  std::string trace, shape;
  std::uint32_t layers = 0, windows = 0;
  // Balancedness: mean over windows and layers; worst layer.
  double greedy_even = 0, greedy_split = 0;
  double ours_fresh = 0, ours_ring = 0, ours_split = 0;
  double greedy_even_worst = 0, ours_ring_worst = 0;
  double greedy_copies = 0, ours_copies = 0;  // per layer and window
  double windows_without_move = 0;            // part of layer-windows
  double drift = 0;
  double ours_planned_percent = 0;  // of the bound, after repair
  double warm_61_ms = 0;            // repair and shares of 61 layers, one core
};

// One step's worth of a plot.
struct realised_window {
  std::uint32_t window = 0;
  double greedy_even = 0, ours_ring = 0, ours_split = 0;  // balancedness
  double greedy_copies = 0, ours_copies = 0;
};
struct realised_story {
  std::string trace, shape;
  std::vector<realised_window> windows;           // mean over layers
  std::vector<std::vector<double>> worker_load;   // [window][worker] of ours, first layer, mean 1
  std::vector<std::vector<double>> without_plan;  // the same without
};

struct split_row {
  std::string shape;
  double exact_us = 0, robust_us = 0, wrap_us = 0;  // per layer
};

struct small_batch_row {
  std::string shape;
  std::uint32_t tokens = 0;
  double balanced_us = 0, primary_us = 0;  // longest worker's layer time, mean
};

expected<std::vector<planned_row>> bench_planned(const plan_bench_options& o);
struct realised_figures {
  std::vector<realised_row> rows;
  std::vector<realised_story> stories;
};
expected<realised_figures> bench_realised(const plan_bench_options& o);
expected<std::vector<split_row>> bench_split(const plan_bench_options& o);
expected<std::vector<small_batch_row>> bench_small_batch(const plan_bench_options& o);

}  // namespace moetier::cli
