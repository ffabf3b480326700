#pragma once
// What `bench kernels --part device` shows of a row: a line of its table, a JSON object, a line of
// README's table. A figure whose oracle failed is in none of them. Thread: any (pure functions).

#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "actors/cli/device_rows.hpp"
#include "kernels/cuda/bench/device_ceilings.hpp"
#include "kernels/cuda/bench/layer_bench.hpp"

namespace moetier::cli {

struct device_result {
  device_row row;
  std::string backend;
  double active = 0;  // slots, mean over the routings
  double padded = 0;  // places of row tiles, mean over the routings
  std::optional<kernels::cuda::bench::layer_figures> figures{};
  std::string why{};  // where there are none

  bool passed() const noexcept { return figures && figures->oracle.pass; }
};

// Of the run that all rows share.
struct device_run {
  kernels::cuda::bench::bench_device_facts facts;
  kernels::cuda::bench::device_ceilings ceilings;
  std::string commit;
};

// Largest time that meets the target; 0 where none is set.
double target_us(const device_result& result) noexcept;
// Least time by this run's own ceilings: what the probe took, or the products at the rate measured;
// 0 where the row has no figures.
double run_floor_us(const device_result& result, const device_run& run) noexcept;

std::string device_head();
std::string device_line(const device_result& result);
std::string ceilings_line(const device_run& run);
nlohmann::ordered_json device_json(const device_result& result, const device_run& run);
std::string markdown_head();
std::string markdown_line(const device_result& result);

}  // namespace moetier::cli
