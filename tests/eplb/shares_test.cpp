#include "eplb/shares.hpp"

#include <numeric>

#include <gtest/gtest.h>

#include "tests/eplb/small_placement.hpp"

namespace moetier::eplb {
namespace {

using units_row = std::vector<std::uint32_t>;

placement three_replicas() {
  return *placement::make(2, spans_of({2, 2, 2}), {{layer_id{0}, {0, 1, 0, -1, 0, 1}}});
}

units_row units_of(const shares& s) { return {s.units(0).begin(), s.units(0).end()}; }

TEST(shares, split_evenly_and_sum_exactly) {
  const placement p = three_replicas();
  const shares s = shares::even(p, {true, true, true}, {epoch_number{1}, 0});
  EXPECT_EQ(units_of(s), (units_row{21846, 32768, 21845, 0, 21845, 32768}));
  EXPECT_EQ(s.bounds(0, 0).back(), 65536U);
}

TEST(shares, give_nothing_to_dead_workers) {
  const placement p = three_replicas();
  const shares s = shares::even(p, {false, true, false}, {epoch_number{2}, 1});
  EXPECT_EQ(units_of(s), (units_row{0, 0, 65536, 0, 0, 0}));
  EXPECT_TRUE(s.has_live_replica(0, 0));
  EXPECT_FALSE(s.has_live_replica(0, 1));
}

TEST(shares, refuse_wrong_sums_and_shares_of_empty_slots) {
  const placement p = three_replicas();
  const auto sum = shares::from_units(p, {{1, 65536, 0, 0, 0, 0}}, {});
  ASSERT_FALSE(sum.has_value());
  EXPECT_EQ(sum.error().text,
            "placement: layer 0 expert 0: shares sum to 1; they must sum to 65536");
  const auto empty = shares::from_units(p, {{65536, 65536, 0, 1, 0, 0}}, {});
  ASSERT_FALSE(empty.has_value());
  EXPECT_EQ(empty.error().text, "placement: layer 0 slot 3 is empty but has a share");
  EXPECT_FALSE(shares::from_units(p, {}, {}).has_value());
  EXPECT_FALSE(shares::from_units(p, {{1}}, {}).has_value());
  const auto overflow =
      shares::from_units(p, {{0xffffffffU, 65536, 0xffffffffU, 0, 65538U, 0}}, {});
  EXPECT_FALSE(overflow.has_value());
}

TEST(shares, of_a_plan_go_to_live_replicas_in_proportion) {
  const placement p =
      *placement::make(2, spans_of({2, 2, 1, 1}), {{layer_id{0}, {0, 1, 0, 1, 0, 0}}});
  const std::vector<std::vector<std::uint32_t>> units{{16384, 65536, 16384, 0, 32768, 0}};
  EXPECT_EQ(shares::over_live(p, units, {true, true, true, true}, {}).units(0)[4], 32768U);
  const shares s = shares::over_live(p, units, {false, true, true, true}, {});
  EXPECT_EQ(s.units(0)[2], 21845U);
  EXPECT_EQ(s.units(0)[3], 65536U);  // had nothing, and is the only one left
  EXPECT_EQ(s.units(0)[4], 43691U);
  const shares last = shares::over_live(p, units, {false, false, false, true}, {});
  EXPECT_EQ(last.units(0)[5], 65536U);
  EXPECT_FALSE(last.has_live_replica(0, 1));
}

}  // namespace
}  // namespace moetier::eplb
