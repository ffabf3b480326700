#include "eplb/split/primary_replicas.hpp"

#include <gtest/gtest.h>

#include "eplb/planner/reference_global.hpp"
#include "eplb/split/slot_time.hpp"
#include "tests/eplb/random_loads.hpp"

namespace moetier::eplb {
namespace {

TEST(slot_time, follows_weights_then_rows) {
  const slot_cost c;
  EXPECT_EQ(slot_time_us(0, c), 0);
  EXPECT_EQ(slot_time_us(1, c), 9.2);
  EXPECT_EQ(slot_time_us(1000, c), 88);
  EXPECT_NEAR(crossover_rows(c), 104.5, 0.1);
  EXPECT_EQ(regime_of(9.9), load_regime::active_slots);
  EXPECT_EQ(regime_of(10), load_regime::weights);
  EXPECT_EQ(regime_of(100), load_regime::tokens);
  const std::vector<std::uint64_t> rows{1, 0, 200, 3};
  EXPECT_NEAR(longest_us(rows, *slot_layout::even(2, 4), c), 17.6 + 9.2, 1e-9);
}

TEST(primary_replicas, send_every_expert_to_one_live_host) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const auto w = random_loads(load_kind::lognormal, 32, seed);
    const slot_layout layout = *slot_layout::even(4, 40);
    const auto slots = reference_distinct(w, layout);
    const std::vector<std::uint8_t> live{1, 1, 0, 1};
    const auto units =
        primary_replicas({.layout = &layout, .slots = slots, .loads = w, .live = live}, 64);
    std::vector<int> primaries(32, 0);
    std::vector<int> hosts(32, 0);
    for (std::uint32_t s = 0; s < 40; ++s) {
      const bool dead = layout.worker_of(s) == 2;
      if (!dead && slots[s] >= 0) ++hosts[static_cast<std::size_t>(slots[s])];
      if (units[s] == 0) continue;
      EXPECT_EQ(units[s], 65536U);
      EXPECT_FALSE(dead);
      ++primaries[static_cast<std::size_t>(slots[s])];
    }
    for (std::size_t e = 0; e < 32; ++e) EXPECT_EQ(primaries[e], hosts[e] > 0 ? 1 : 0);
  }
}

TEST(primary_replicas, spread_the_chances_to_be_active) {
  // Experts 0 and 1 have both workers; 2 and 3 are fixed on worker 0.
  const slot_layout layout = *slot_layout::even(2, 8);
  const std::vector<std::int32_t> slots{0, 1, 2, 3, 0, 1, -1, -1};
  const std::vector<std::uint64_t> w{10, 10, 10, 10};
  const auto units = primary_replicas({.layout = &layout, .slots = slots, .loads = w}, 4);
  EXPECT_EQ(units[4], 65536U);
  EXPECT_EQ(units[5], 65536U);
}

}  // namespace
}  // namespace moetier::eplb
