#pragma once
// The parts of `bench kernels`: each measures one kind of kernel in this process, no tier needed,
// and checks in the same run that all forms agree. A new part is one file and one line in the table
// of bench_kernels_command.cpp. Thread: owner.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "schemas/base/error.hpp"

namespace moetier::cli {

struct kernel_bench_options {
  std::uint64_t seed = 1;
  std::uint32_t repeat = 30;  // measurements of each form; medians are shown
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
// One expert in each format beside bf16; about 20 s and 2.5 times the last cache of memory.
expected<std::vector<kernel_figures>> bench_experts(const kernel_bench_options& options);

}  // namespace moetier::cli
