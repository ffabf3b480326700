// What runs beside a tier's traffic allocates nothing once it has room: exact split, robust shares,
// replica choice; and a million calls leave nothing behind.
#include <gtest/gtest.h>

#include "eplb/planner/cold_plan.hpp"
#include "eplb/replica_choice.hpp"
#include "eplb/split/robust_shares.hpp"
#include "tests/allocation_count.hpp"
#include "tests/eplb/random_loads.hpp"
#include "tests/eplb/small_placement.hpp"

namespace moetier::eplb {
namespace {

struct layer_case {
  slot_layout layout;
  planned_layer plan;
  std::vector<std::vector<std::uint64_t>> loads;

  layer_case(std::uint32_t experts, std::uint32_t slots, std::uint32_t workers)
      : layout(*slot_layout::even(workers, slots)) {
    for (std::uint64_t seed = 0; seed < 12; ++seed)
      loads.push_back(random_loads(load_kind::lognormal, experts, 7 * seed));
    cold_planner planner;
    plan = *planner.plan(loads[0], layout);
  }
};

TEST(allocations, none_in_the_exact_split) {
  const layer_case c(256, 288, 32);
  exact_split split;
  split.reserve(256, 288, 32);
  std::vector<std::uint32_t> units(288);
  const std::size_t before = allocations.load();
  for (const auto& w : c.loads) {
    const split_problem p{.layout = &c.layout, .slots = c.plan.slots, .loads = w};
    split.solve(p);
    split.shares(p, units);
    split.fits(p, split.limit());
  }
  EXPECT_EQ(allocations.load(), before);
}

TEST(allocations, none_in_robust_shares) {
  const layer_case c(256, 288, 32);
  robust_shares robust;
  robust.reserve(256, 288, 32, 12);
  std::vector<load_sample> samples;
  for (const auto& w : c.loads) samples.push_back({w, 1});
  std::vector<std::uint32_t> units = c.plan.units;
  const std::size_t before = allocations.load();
  robust.solve({.layout = &c.layout, .slots = c.plan.slots, .loads = {}}, samples, units);
  EXPECT_EQ(allocations.load(), before);
}

TEST(allocations, none_in_replica_choice) {
  const layer_case c(32, 40, 4);
  const auto placed =
      *placement::make(32, spans_of({10, 10, 10, 10}), {{layer_id{0}, c.plan.slots}});
  const auto shares = *shares::from_units(placed, {c.plan.units}, {});
  std::vector<std::int32_t> ids(512), dense(512);
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::int32_t>(i % 32);
  std::vector<std::uint32_t> counts(64);
  const std::size_t before = allocations.load();
  choose_stratified(placed, shares, 0, {generation_number{1}, layer_id{0}, source_id{0}, 3, 0}, ids,
                    dense, counts);
  choose_by_hash(placed, shares, 0, {generation_number{1}, layer_id{0}, source_id{0}, 3}, 0, 4, ids,
                 dense);
  choose_as_reference(placed, 0, source_id{0}, ids, dense, counts);
  EXPECT_EQ(allocations.load(), before);
}

TEST(allocations, a_million_splits_leave_nothing_behind) {
  const layer_case c(32, 40, 4);
  exact_split split;
  split.reserve(32, 40, 4);
  std::vector<std::uint32_t> units(40);
  const std::size_t before = allocations.load();
  for (std::uint32_t i = 0; i < 1'000'000; ++i) {
    const split_problem p{
        .layout = &c.layout, .slots = c.plan.slots, .loads = c.loads[i % c.loads.size()]};
    split.solve(p);
    split.shares(p, units);
  }
  EXPECT_EQ(allocations.load(), before);
}

}  // namespace
}  // namespace moetier::eplb
