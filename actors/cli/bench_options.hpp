#pragma once
// What the benches that move rows take: `bench wire`, `bench tier`, `bench sessions`. Defaults are
// those of the command line. Thread: any (values).

#include <cstdint>
#include <string>
#include <vector>

#include "actors/cli/bench_load.hpp"
#include "actors/cli/figure_demand.hpp"

namespace moetier::cli {

struct bench_options {  // of `bench tier`
  std::uint32_t calls = 2000;
  std::uint32_t warmup = 200;
  std::vector<std::uint32_t> tokens{1};  // of a call, one cell each
  std::vector<std::uint32_t> workers;    // one embedded tier each; empty = the tier at --address
  std::uint32_t layer = 0;               // 0 and not a MoE layer: the first one
  std::uint64_t seed = k_load_seed;      // of rows and logits
  load_wish load;
  std::vector<figure_demand> demands;
  bool markdown = false;
};

struct sessions_options {  // of `bench sessions`
  std::vector<std::uint32_t> sessions{1, 2, 3, 4};
  std::vector<std::uint32_t> tokens{256};  // of all sessions together, one table each
  std::vector<std::uint32_t> workers;      // as of bench_options
  std::uint32_t rounds = 20;
  std::uint32_t steps = 50;  // of every session in one measurement
  std::uint32_t layer = 0;
  std::uint64_t seed = k_load_seed;
  load_wish load;
  std::vector<figure_demand> demands;
  bool markdown = false;
};

struct wire_options {  // of `bench wire`
  std::uint32_t hidden_size = 7168;
  std::vector<std::uint32_t> rows{1, 16, 256};
  std::vector<std::uint32_t> mebibytes{1, 16};
  std::vector<std::string> ways;  // empty = all
  std::uint32_t calls = 2000;     // fewer of large messages
  std::uint32_t warmup = 50;
  std::vector<figure_demand> demands;
  bool markdown = false;
};

}  // namespace moetier::cli
