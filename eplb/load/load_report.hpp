#pragma once
// What one worker tells of one session: the selections it received, summed over 32 steps, and those
// of every eighth single step. Tagged with the generation whose placement its slots belong to, so
// that slots become experts long after a commit. Thread: any (a value).

#include <cstdint>
#include <vector>

#include "schemas/base/ids.hpp"

namespace moetier::eplb {

struct report_tag {
  epoch_number epoch;
  generation_number generation;
  plan_hash plan;
  std::uint64_t first_step = 0;
  std::uint64_t last_step = 0;  // inside the window of first_step
};

struct step_counts {
  std::uint64_t step = 0;
  std::vector<std::uint64_t> by_slot;  // as the sums
};

struct load_report {
  report_tag tag;
  worker_id worker;
  std::vector<std::uint64_t> by_slot;  // [layer][the worker's local slot]
  std::vector<step_counts> samples;    // steps that are multiples of 8
};

}  // namespace moetier::eplb
