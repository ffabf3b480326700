#include "eplb/split/robust_shares.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "eplb/planner/cold_plan.hpp"
#include "eplb/split/fast_exp.hpp"
#include "tests/eplb/random_loads.hpp"

namespace moetier::eplb {
namespace {

TEST(fast_exp, is_close_to_the_library) {
  for (float x = -80; x <= 0; x += 0.0137F) EXPECT_NEAR(fast_exp(x) / std::exp(x), 1, 1e-5) << x;
  EXPECT_EQ(fast_exp(0), 1);
  EXPECT_EQ(fast_exp(-1000), fast_exp(-80));
}

struct noisy_case {
  slot_layout layout = *slot_layout::even(8, 72);
  planned_layer plan;
  std::vector<std::vector<std::uint64_t>> loads;

  explicit noisy_case(std::uint64_t seed) {
    const auto mean = random_loads(load_kind::lognormal, 64, seed);
    cold_planner planner;
    plan = *planner.plan(mean, layout);
    std::mt19937_64 random(seed);
    for (int v = 0; v < 24; ++v) {
      auto w = mean;
      std::lognormal_distribution<double> noise(0, 0.4);
      for (auto& x : w) x = static_cast<std::uint64_t>(static_cast<double>(x) * noise(random));
      loads.push_back(w);
    }
  }
  split_problem problem() const { return {.layout = &layout, .slots = plan.slots, .loads = {}}; }
  std::vector<load_sample> samples(std::size_t first, std::size_t count) const {
    std::vector<load_sample> all;
    for (std::size_t v = first; v < first + count; ++v) all.push_back({loads[v], 1});
    return all;
  }
  double mean_excess(std::span<const std::uint32_t> units, std::size_t first) const {
    double sum = 0;
    for (std::size_t v = first; v < first + 12; ++v) {
      const auto x = planned_loads(loads[v], layout, plan.slots, units);
      double all = 0;
      for (const double g : x) all += g;
      sum += *std::max_element(x.begin(), x.end()) / (all / 8) - 1;
    }
    return sum / 12;
  }
};

TEST(robust_shares, are_better_on_later_samples_than_exact_shares_of_earlier_ones) {
  double exact_excess = 0;
  double robust_excess = 0;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const noisy_case c(seed);
    robust_shares robust;
    std::vector<std::uint32_t> units = c.plan.units;
    const auto samples = c.samples(0, 12);
    const auto outcome = robust.solve(c.problem(), samples, units);
    EXPECT_LT(outcome.mean_maximum_after, outcome.mean_maximum_before);
    EXPECT_TRUE(outcome.worth_publishing);
    robust_excess += c.mean_excess(units, 12);
    std::vector<std::uint64_t> sum(64, 0);
    for (int v = 0; v < 12; ++v)
      for (std::size_t e = 0; e < 64; ++e) sum[e] += c.loads[static_cast<std::size_t>(v)][e];
    auto p = c.problem();
    p.loads = sum;
    exact_split exact;
    exact.solve(p);
    std::vector<std::uint32_t> exact_units(units.size());
    exact.shares(p, exact_units);
    exact_excess += c.mean_excess(exact_units, 12);
    std::vector<std::uint64_t> whole(64, 0);
    for (std::uint32_t s = 0; s < units.size(); ++s)
      whole[static_cast<std::size_t>(c.plan.slots[s])] += units[s];
    for (const auto of_expert : whole) EXPECT_EQ(of_expert, 65536U);
  }
  EXPECT_LT(robust_excess, exact_excess);
}

TEST(robust_shares, are_not_worth_publishing_twice) {
  const noisy_case c(4);
  robust_shares robust;
  std::vector<std::uint32_t> units = c.plan.units;
  const auto samples = c.samples(0, 12);
  EXPECT_TRUE(robust.solve(c.problem(), samples, units).worth_publishing);
  EXPECT_FALSE(robust.solve(c.problem(), samples, units).worth_publishing);
}

TEST(robust_shares, count_a_doubled_sample_as_two) {
  const noisy_case c(5);
  robust_shares robust;
  std::vector<std::uint32_t> weighted = c.plan.units;
  std::vector<std::uint32_t> doubled = c.plan.units;
  auto samples = c.samples(0, 3);
  samples[2].weight = 2;
  robust.solve(c.problem(), samples, weighted);
  samples[2].weight = 1;
  samples.push_back(samples[2]);
  robust.solve(c.problem(), samples, doubled);
  for (std::size_t s = 0; s < weighted.size(); ++s)
    EXPECT_NEAR(weighted[s], doubled[s], 64) << s;  // of 65,536: order of the sums alone
}

TEST(robust_shares, give_a_dead_worker_nothing) {
  const noisy_case c(6);
  std::vector<std::uint8_t> live(8, 1);
  live[3] = 0;
  robust_shares robust;
  std::vector<std::uint32_t> units = c.plan.units;
  auto p = c.problem();
  p.live = live;
  const auto samples = c.samples(0, 6);
  robust.solve(p, samples, units);
  for (std::uint32_t s = c.layout.first(3); s < c.layout.first(4); ++s) EXPECT_EQ(units[s], 0U);
}

}  // namespace
}  // namespace moetier::eplb
