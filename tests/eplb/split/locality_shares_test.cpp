#include "eplb/split/locality_shares.hpp"

#include <gtest/gtest.h>

#include "eplb/planner/cold_plan.hpp"
#include "tests/eplb/random_loads.hpp"

namespace moetier::eplb {
namespace {

using loads = std::vector<std::uint64_t>;

TEST(locality_shares, keep_rows_at_home_where_there_is_room) {
  // Expert 0 lies in both clusters; each cluster asks as much as its worker can serve.
  const slot_layout layout = *slot_layout::even(2, 4);
  const std::vector<std::int32_t> slots{0, 1, 0, 2};
  const std::vector<std::uint32_t> cluster{0, 1};
  const std::vector<loads> asked{{10, 4, 0}, {10, 0, 4}};
  const auto out = locality_shares({.split = {.layout = &layout, .slots = slots, .loads = {}},
                                    .worker_cluster = cluster,
                                    .loads = asked});
  EXPECT_EQ(out.cross_rows_ratio, 0);
  EXPECT_EQ(out.units[0], (std::vector<std::uint32_t>{65536, 65536, 0, 65536}));
  EXPECT_EQ(out.units[1], (std::vector<std::uint32_t>{0, 65536, 65536, 65536}));
}

TEST(locality_shares, cross_only_as_far_as_balance_asks) {
  // All rows come from cluster 0: half of them must cross, less the slack.
  const slot_layout layout = *slot_layout::even(2, 2);
  const std::vector<std::int32_t> slots{0, 0};
  const std::vector<std::uint32_t> cluster{0, 1};
  const std::vector<loads> asked{{1000}, {0}};
  const auto out = locality_shares({.split = {.layout = &layout, .slots = slots, .loads = {}},
                                    .worker_cluster = cluster,
                                    .loads = asked});
  EXPECT_NEAR(out.cross_rows_ratio, 0.49, 1e-4);
  EXPECT_NEAR(out.limit, 510, 0.1);
}

TEST(locality_shares, stay_within_the_slack_and_never_cross_more_than_the_balanced_split) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const slot_layout layout = *slot_layout::even(8, 48);
    std::vector<loads> asked;
    loads sum(32, 0);
    for (std::uint64_t c = 0; c < 4; ++c) {
      asked.push_back(random_loads(load_kind::lognormal, 32, seed * 4 + c));
      for (std::size_t e = 0; e < 32; ++e) sum[e] += asked.back()[e];
    }
    cold_planner planner;
    const auto plan = *planner.plan(sum, layout);
    std::vector<std::uint32_t> cluster(8);
    for (std::uint32_t g = 0; g < 8; ++g) cluster[g] = g / 2;
    const auto out =
        locality_shares({.split = {.layout = &layout, .slots = plan.slots, .loads = {}},
                         .worker_cluster = cluster,
                         .loads = asked});
    exact_split exact;
    const double limit = exact.solve({.layout = &layout, .slots = plan.slots, .loads = sum});
    EXPECT_LE(out.limit, 1.02 * limit * (1 + 1e-3)) << "seed " << seed;
    double all = 0;
    double crossing = 0;
    std::vector<std::uint32_t> balanced(48);
    exact.shares({.layout = &layout, .slots = plan.slots, .loads = sum}, balanced);
    for (std::uint32_t c = 0; c < 4; ++c) {
      for (std::uint32_t s = 0; s < 48; ++s) {
        if (plan.slots[s] < 0) continue;
        const double rows = static_cast<double>(asked[c][static_cast<std::size_t>(plan.slots[s])]) *
                            balanced[s] / 65536;
        all += rows;
        if (cluster[layout.worker_of(s)] != c) crossing += rows;
      }
    }
    EXPECT_LT(out.cross_rows_ratio, crossing / all) << "seed " << seed;
  }
}

}  // namespace
}  // namespace moetier::eplb
