#include "eplb/split/exact_split.hpp"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <bit>
#include <numeric>

#include "eplb/limits.hpp"
#include "eplb/planner/reference_global.hpp"
#include "tests/eplb/random_loads.hpp"

namespace moetier::eplb {
namespace {

using loads = std::vector<std::uint64_t>;
using experts = std::vector<std::int32_t>;

struct small_case {
  slot_layout layout;
  experts slots;
  loads w;
  std::vector<std::uint8_t> live;
  std::vector<std::uint32_t> speeds;

  split_problem problem() const { return {&layout, slots, w, live, speeds}; }
};

// max over sets Z of workers of (load that only Z can serve) / (speed of Z): what no split can go
// below, and what the best one reaches.
double by_brute_force(const small_case& c) {
  double best = 0;
  for (unsigned set = 1; set < (1U << c.layout.workers()); ++set) {
    double speed = 0;
    bool dead = false;
    for (std::uint32_t g = 0; g < c.layout.workers(); ++g) {
      if ((set >> g & 1) == 0) continue;
      dead |= !c.live.empty() && c.live[g] == 0;
      speed += c.speeds.empty() ? 1 : c.speeds[g] / 65536.0;
    }
    if (dead) continue;
    double load = 0;
    for (std::size_t e = 0; e < c.w.size(); ++e) {
      unsigned hosts = 0;
      for (std::uint32_t s = 0; s < c.slots.size(); ++s) {
        const std::uint32_t g = c.layout.worker_of(s);
        if (c.slots[s] == static_cast<std::int32_t>(e) && (c.live.empty() || c.live[g] != 0))
          hosts |= 1U << g;
      }
      if (hosts != 0 && (hosts & ~set) == 0) load += static_cast<double>(c.w[e]);
    }
    best = std::max(best, load / speed);
  }
  return best;
}

small_case random_case(std::uint64_t seed) {
  const auto workers = static_cast<std::uint32_t>(1 + seed % 6);
  const auto count = static_cast<std::uint32_t>(1 + seed % 13);
  small_case c{*slot_layout::even(workers, std::max(workers, count + std::uint32_t(seed % 9))),
               {},
               random_loads(k_load_kinds[seed % 4], count, seed),
               {},
               {}};
  // Placed by other loads than those that are split.
  c.slots = reference_distinct(random_loads(load_kind::lognormal, count, seed + 1), c.layout);
  return c;
}

void expect_served(const small_case& c, const exact_split& split, const std::string& where) {
  std::vector<double> by_worker(c.layout.workers(), 0);
  std::vector<double> by_expert(c.w.size(), 0);
  for (std::uint32_t s = 0; s < c.slots.size(); ++s) {
    if (c.slots[s] < 0) continue;
    const double speed = c.speeds.empty() ? 1 : c.speeds[c.layout.worker_of(s)] / 65536.0;
    by_worker[c.layout.worker_of(s)] += split.served(s) / speed;
    by_expert[static_cast<std::size_t>(c.slots[s])] += split.served(s);
  }
  for (const double x : by_worker) EXPECT_LE(x, split.limit() * (1 + 1e-9) + 1e-9) << where;
  for (std::size_t e = 0; e < c.w.size(); ++e) {
    bool hosted = false;
    for (std::uint32_t s = 0; s < c.slots.size(); ++s)
      hosted |= c.slots[s] == static_cast<std::int32_t>(e) &&
                (c.live.empty() || c.live[c.layout.worker_of(s)] != 0);
    EXPECT_NEAR(by_expert[e], hosted ? static_cast<double>(c.w[e]) : 0, 1e-6 * by_expert[e] + 1e-9)
        << where;
  }
}

TEST(exact_split, gives_the_documented_vectors) {
  const std::vector<std::uint32_t> each{2, 2, 2};
  small_case c{*slot_layout::make(each), {0, 1, 1, 2, 3, 4}, {2, 10, 1, 1, 1}, {}, {}};
  exact_split split;
  EXPECT_NEAR(split.solve(c.problem()), 6.5, 1e-9);
  EXPECT_TRUE(split.bottleneck(0) && split.bottleneck(1));
  EXPECT_FALSE(split.bottleneck(2));
  small_case reference{*slot_layout::even(2, 6), {0, 0, 3, 0, 1, 2}, {10, 1, 1, 1}, {}, {}};
  reference.slots[1] = -1;  // the reference doubles expert 0; one of the two slots is enough
  EXPECT_NEAR(split.solve(reference.problem()), 6.5, 1e-9);
  EXPECT_NEAR(split.served(0), 5.5, 1e-9);
  EXPECT_NEAR(split.served(3), 4.5, 1e-9);
}

TEST(exact_split, reaches_what_brute_force_finds) {
  exact_split split;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    const small_case c = random_case(seed);
    const std::string where = fmt::format("seed {}", seed);
    const double best = by_brute_force(c);
    EXPECT_NEAR(split.solve(c.problem()), best, 1e-9 * best) << where;
    expect_served(c, split, where);
    if (best > 0) {
      exact_split trial;
      EXPECT_TRUE(trial.fits(c.problem(), best * (1 + 1e-9))) << where;
      EXPECT_FALSE(trial.fits(c.problem(), best * (1 - 1e-9))) << where;
    }
  }
}

TEST(exact_split, leaves_dead_workers_out_and_weighs_speeds) {
  exact_split split;
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    small_case c = random_case(seed);
    const std::string where = fmt::format("seed {}", seed);
    for (std::uint32_t g = 0; g < c.layout.workers(); ++g) {
      c.live.push_back(g == seed % 7 ? 0 : 1);
      c.speeds.push_back(g % 2 == 0 ? 65536 : 40000);
    }
    if (std::count(c.live.begin(), c.live.end(), 1) == 0) continue;
    const double best = by_brute_force(c);
    EXPECT_NEAR(split.solve(c.problem()), best, 1e-9 * best) << where;
    expect_served(c, split, where);
  }
}

TEST(exact_split, names_workers_that_hold_the_limit_up) {
  exact_split split;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const small_case c = random_case(seed);
    if (split.solve(c.problem()) == 0) continue;
    double load = 0;
    double count = 0;
    for (std::uint32_t g = 0; g < c.layout.workers(); ++g) count += split.bottleneck(g) ? 1 : 0;
    for (std::size_t e = 0; e < c.w.size(); ++e) {
      bool confined = true;
      for (std::uint32_t s = 0; s < c.slots.size(); ++s)
        confined &=
            c.slots[s] != static_cast<std::int32_t>(e) || split.bottleneck(c.layout.worker_of(s));
      if (confined) load += static_cast<double>(c.w[e]);
    }
    const double mean =
        static_cast<double>(std::accumulate(c.w.begin(), c.w.end(), std::uint64_t{0})) /
        c.layout.workers();
    // Where the mean itself is reached nobody in particular holds it up.
    if (split.limit() > mean * (1 + 1e-9)) {
      EXPECT_NEAR(load / count, split.limit(), 1e-9 * split.limit()) << "seed " << seed;
    }
  }
}

TEST(exact_split, holds_at_the_limits_without_overflow) {
  const std::uint32_t workers = 1024;
  small_case c{
      *slot_layout::even(workers, 4096 + workers), {}, loads(4096, k_load_max / workers), {}, {}};
  c.slots = reference_distinct(c.w, c.layout);
  exact_split split;
  const double mean = static_cast<double>(c.w[0]) * 4096 / workers;
  EXPECT_GE(split.solve(c.problem()), mean * (1 - 1e-9));
  std::vector<std::uint32_t> units(c.slots.size());
  split.shares(c.problem(), units);
  std::uint64_t all = 0;
  for (const auto u : units) all += u;
  EXPECT_EQ(all, std::uint64_t{4096} * 65536);
  c.w.assign(4096, 0);
  c.w[9] = std::uint64_t{1} << 62;
  EXPECT_GT(split.solve(c.problem()), 0);
}

TEST(exact_split, gives_idle_experts_even_shares_and_lost_ones_none) {
  const std::vector<std::uint32_t> each{2, 1};
  small_case c{*slot_layout::make(each), {0, 1, 0}, {0, 5}, {0, 1}, {}};
  exact_split split;
  split.solve(c.problem());
  EXPECT_EQ(split.experts_lost(), 1U);
  std::vector<std::uint32_t> units(3);
  split.shares(c.problem(), units);
  EXPECT_EQ(units, (std::vector<std::uint32_t>{0, 0, 65536}));
  c.live.clear();
  split.solve(c.problem());
  split.shares(c.problem(), units);
  EXPECT_EQ(units, (std::vector<std::uint32_t>{32768, 65536, 32768}));
}

}  // namespace
}  // namespace moetier::eplb
