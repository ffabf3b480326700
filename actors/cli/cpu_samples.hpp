#pragma once
// The samples behind one row of CPU figures, taken in rounds: cold calls, warm calls, ceilings.
// Thread: owner.

#include <functional>
#include <vector>

#include "actors/cli/cpu_figures.hpp"

namespace moetier::cli {

inline constexpr std::uint32_t k_cold_per_round = 6;
inline constexpr std::uint32_t k_warm_per_round = 5;

class cpu_samples final {
 public:
  std::size_t cold_count() const noexcept { return cold_us_.size(); }
  // call(weights) does `flops` operations over one copy of the ring.
  void take_round(cold_sampler& sampler, weight_ring& ring, double flops,
                  const std::function<void(const std::byte*)>& call);
  void give(cpu_figures& to);

 private:
  std::vector<double> cold_us_, cold_of_, warm_us_, warm_of_, fma_, read_1_, read_4_;
};

}  // namespace moetier::cli
