#pragma once
// The parts of `bench kernels`: each measures one kind of kernel in this process, no tier needed,
// and checks in the same run that all forms agree. A new part is one file and one line in the table
// of bench_kernels_command.cpp. Thread: owner.

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "schemas/base/error.hpp"

namespace moetier::cli {

struct kernel_bench_options {
  std::uint64_t seed = 1;
  std::uint32_t repeat = 30;  // measurements of each form; medians are shown
  // Of the parts cpu and device: which rows (empty = all).
  std::string shape{};
  std::string format{};
  std::vector<std::uint32_t> rows{};
  std::string backend{};       // the one asked for by name; empty = all
  std::string peer{};          // file of the cpu part's peer; empty = look for it, "none" = without
  std::size_t ring_bytes = 0;  // of the cpu part's weights; 0 = what no cache holds
  bool markdown = false;       // tables as README shows them
  std::function<void(const std::string& line)> say = [](const std::string&) {};
};

// What a part gives: its rows, how many were wrong, or why there are none.
struct part_report {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  std::size_t errors = 0;
  std::string skipped{};
  nlohmann::ordered_json more{};  // said once for all rows; null = nothing
};

// One kernel at one shape. The ratio shown is that of the first form to the last.
struct kernel_figures {
  std::string kernel;                                  // "deepseek_v3"
  std::string shape;                                   // "E 256 k 8 groups 8/4"
  std::string unit;                                    // of the forms' medians: "ns/token"
  std::vector<std::pair<std::string, double>> forms;   // baseline first: plain, scalar, avx2
  double aim = 0;                                      // least ratio wanted; 0 = none
  bool agrees = true;                                  // the forms gave the same results
  std::vector<std::pair<std::string, double>> more{};  // further figures, by name
  std::string note{};                                  // which path ran, and why

  double ratio() const noexcept;  // 0 where there is one form only
};

expected<std::vector<kernel_figures>> bench_routing(const kernel_bench_options& options);
// The source half's sum of a token's rows.
expected<std::vector<kernel_figures>> bench_combine(const kernel_bench_options& options);
// Products of bf16 weights and whole experts on one core beside its ceilings and a peer; about 30 s
// and 0.5 GiB.
expected<part_report> bench_cpu(const kernel_bench_options& options);
// One expert in each format beside bf16; about 20 s and 2.5 times the last cache of memory.
expected<std::vector<kernel_figures>> bench_experts(const kernel_bench_options& options);
// One layer's experts on the GPU, for shapes, formats and numbers of rows; about two minutes. Says
// each line as it is measured. Skipped, with a sentence, without a device or CUDA code.
expected<part_report> bench_device(const kernel_bench_options& options);

}  // namespace moetier::cli
