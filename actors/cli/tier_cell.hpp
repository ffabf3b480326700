#pragma once
// One cell of `bench tier`: what calls of so many tokens took with so many workers, and what stands
// beside them from the same run. Thread: any (a value).

#include <cstdint>
#include <optional>

#include "actors/cli/call_split.hpp"
#include "actors/cli/latency.hpp"

namespace moetier::cli {

struct tier_cell {
  std::uint32_t workers = 0;
  std::uint32_t tokens = 0;
  std::uint32_t calls = 0;
  latency_figures total, route, pack, wait, sum;  // by the source's clocks
  call_split split;
  bool stages_known = false;  // of the workers: the split has queue and compute
  latency_figures echo;       // of the rows of one worker
  std::optional<latency_figures> compute_alone{};  // of all rows, in this process
  double bytes = 0;                                // of that echo, both ways

  // The round trip less compute: by the workers' own clocks where they are known, else less the
  // compute that was measured alone. None where neither is there.
  std::optional<double> own_share_us() const noexcept;
  std::optional<double> own_share_echoes() const noexcept;
  double tokens_per_s() const noexcept;
  double gb_per_s() const noexcept;  // bytes over the median round trip
  // What the same run says is needed, compute and one echo, over the whole.
  std::optional<double> roofline_ratio() const noexcept;

 private:
  std::optional<double> compute_us() const noexcept;
  double whole_us() const noexcept { return stages_known ? split.total : total.p50; }
};

}  // namespace moetier::cli
