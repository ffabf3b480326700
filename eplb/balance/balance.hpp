#pragma once
// Balance by its one definition: of one layer and one step (or one plan), over live workers. The
// ratio comes first, then the mean over steps; over layers the mean and the worst are shown. Loads
// are never summed over layers, steps or slots before the division. Thread: any (pure functions).

#include <cstdint>
#include <span>
#include <vector>

namespace moetier::eplb {

// mean x / max x; 1 where nothing was served. Requires: x not empty.
double balancedness(std::span<const std::uint64_t> x) noexcept;
double balancedness(std::span<const double> x) noexcept;
// max x / mean x - 1 = 1 / balancedness - 1: the excess.
double imbalance(std::span<const double> x) noexcept;
// 1 - mean t / max t of layer times: the idle part of the average worker.
double wait_fraction(std::span<const double> t) noexcept;
// 100 * bound / max x; 100 where nothing was served.
double percent_of_optimal(double bound, std::span<const double> x) noexcept;

// Means over the steps of each layer, then mean and worst over the layers. Steps without load are
// left out.
class balance_summary final {
 public:
  explicit balance_summary(std::size_t layers) : of_layer_(layers) {}
  // `ratio` of one layer and step. Requires: layer < layers.
  void add(std::size_t layer, double ratio);
  double of(std::size_t layer) const noexcept;  // 1 if nothing was added
  double mean() const noexcept;
  double worst() const noexcept;

 private:
  struct sum {
    double ratios = 0;
    std::uint64_t steps = 0;
  };
  std::vector<sum> of_layer_;
};

// Selections served per slot of one layer and step to the load of each worker. `first` has
// workers + 1 offsets.
std::vector<std::uint64_t> worker_loads(std::span<const std::uint64_t> served_by_slot,
                                        std::span<const std::uint32_t> first);

// The largest part / share over an expert's replicas (1 = as told), or 0 below 1,000 selections.
// `units` are of 1/65,536.
double replica_skew(std::span<const std::uint64_t> served, std::span<const std::uint32_t> units);

}  // namespace moetier::eplb
