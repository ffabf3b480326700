#include "eplb/balance/balance.hpp"

#include <algorithm>
#include <numeric>

#include "schemas/base/assert.hpp"
#include "schemas/base/limits.hpp"

namespace moetier::eplb {
namespace {

constexpr std::uint64_t k_skew_selections_min = 1000;

template <class Number>
double mean_over_max(std::span<const Number> x) noexcept {
  MOETIER_ASSERT(!x.empty());
  double sum = 0;
  double most = 0;
  for (const Number v : x) {
    sum += static_cast<double>(v);
    most = std::max(most, static_cast<double>(v));
  }
  return most == 0 ? 1 : sum / static_cast<double>(x.size()) / most;
}

}  // namespace

double balancedness(std::span<const std::uint64_t> x) noexcept { return mean_over_max(x); }
double balancedness(std::span<const double> x) noexcept { return mean_over_max(x); }
double imbalance(std::span<const double> x) noexcept { return 1 / balancedness(x) - 1; }
double wait_fraction(std::span<const double> t) noexcept { return 1 - balancedness(t); }

double percent_of_optimal(double bound, std::span<const double> x) noexcept {
  MOETIER_ASSERT(!x.empty());
  const double most = *std::max_element(x.begin(), x.end());
  return most == 0 ? 100 : 100 * bound / most;
}

void balance_summary::add(std::size_t layer, double ratio) {
  MOETIER_ASSERT(layer < of_layer_.size());
  of_layer_[layer].ratios += ratio;
  ++of_layer_[layer].steps;
}

double balance_summary::of(std::size_t layer) const noexcept {
  MOETIER_ASSERT(layer < of_layer_.size());
  const sum& s = of_layer_[layer];
  return s.steps == 0 ? 1 : s.ratios / static_cast<double>(s.steps);
}

double balance_summary::mean() const noexcept {
  double all = 0;
  std::size_t layers = 0;
  for (std::size_t l = 0; l < of_layer_.size(); ++l) {
    if (of_layer_[l].steps == 0) continue;
    all += of(l);
    ++layers;
  }
  return layers == 0 ? 1 : all / static_cast<double>(layers);
}

double balance_summary::worst() const noexcept {
  double least = 1;
  bool any = false;
  for (std::size_t l = 0; l < of_layer_.size(); ++l) {
    if (of_layer_[l].steps == 0) continue;
    least = any ? std::min(least, of(l)) : of(l);
    any = true;
  }
  return least;
}

std::vector<std::uint64_t> worker_loads(std::span<const std::uint64_t> served_by_slot,
                                        std::span<const std::uint32_t> first) {
  MOETIER_ASSERT(!first.empty() && first.back() == served_by_slot.size());
  std::vector<std::uint64_t> x(first.size() - 1, 0);
  for (std::size_t g = 0; g + 1 < first.size(); ++g) {
    for (std::uint32_t s = first[g]; s < first[g + 1]; ++s) x[g] += served_by_slot[s];
  }
  return x;
}

double replica_skew(std::span<const std::uint64_t> served, std::span<const std::uint32_t> units) {
  MOETIER_ASSERT(served.size() == units.size());
  const auto total = std::accumulate(served.begin(), served.end(), std::uint64_t{0});
  if (total < k_skew_selections_min) return 0;
  double most = 0;
  for (std::size_t i = 0; i < served.size(); ++i) {
    if (units[i] == 0) continue;
    const double share = static_cast<double>(units[i]) / k_shares_unit;
    most = std::max(most, static_cast<double>(served[i]) / static_cast<double>(total) / share);
  }
  return most;
}

}  // namespace moetier::eplb
