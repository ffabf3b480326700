#include "eplb/planner/repair.hpp"

#include <gtest/gtest.h>

#include "eplb/planner/cold_plan.hpp"
#include "eplb/planner/reference_global.hpp"
#include "tests/eplb/random_loads.hpp"

namespace moetier::eplb {
namespace {

using loads = std::vector<std::uint64_t>;
using experts = std::vector<std::int32_t>;

const loads k_loads{12, 6, 3, 3, 2, 2, 2};
const experts k_slots{0, 1, 2, 3, 4, 5, 6, 4, 5};

repair_outcome repaired(const loads& w, const slot_layout& layout, experts& slots,
                        const repair_rules& rules) {
  repairer r;
  return r.repair({.layout = &layout, .slots = {}, .loads = w}, slots, rules);
}

TEST(repair, gives_the_documented_vector) {
  const slot_layout layout = *slot_layout::even(3, 9);
  experts slots = k_slots;
  auto one = repaired(k_loads, layout, slots, {.copies_max = 1});
  EXPECT_NEAR(one.bound, 10, 1e-9);
  EXPECT_NEAR(one.limit_before, 21, 1e-9);
  EXPECT_NEAR(one.limit_after, 11.5, 1e-9);
  EXPECT_EQ(one.moves.size(), 1U);
  for (const std::uint32_t budget : {2U, 3U, 8U}) {
    slots = k_slots;
    const auto more = repaired(k_loads, layout, slots, {.copies_max = budget});
    EXPECT_NEAR(more.limit_after, 10, 1e-9) << budget;
    EXPECT_EQ(more.moves.size(), 2U) << budget;
  }
}

TEST(repair, does_nothing_below_its_gate) {
  const slot_layout layout = *slot_layout::even(3, 9);
  experts slots = k_slots;
  const auto out = repaired(k_loads, layout, slots, {.copies_max = 8, .start = 2.2});
  EXPECT_TRUE(out.moves.empty());
  EXPECT_EQ(slots, k_slots);
}

TEST(repair, stops_where_it_is_told_to) {
  const slot_layout layout = *slot_layout::even(3, 9);
  experts slots = k_slots;
  const auto out = repaired(k_loads, layout, slots, {.copies_max = 8, .stop = 1.2});
  EXPECT_NEAR(out.limit_after, 11.5, 1e-9);
  EXPECT_EQ(out.moves.size(), 1U);
}

struct moving_case {
  slot_layout layout;
  loads before, after;
  experts slots;
};

moving_case moving(std::uint64_t seed) {
  const auto workers = static_cast<std::uint32_t>(2 + seed % 6);
  const auto count = static_cast<std::uint32_t>(6 + seed % 20);
  moving_case c{*slot_layout::even(workers, count + workers + std::uint32_t(seed % 4)),
                random_loads(load_kind::lognormal, count, seed),
                random_loads(load_kind::lognormal, count, seed + 1),
                {}};
  cold_planner planner;
  c.slots = planner.plan(c.before, c.layout)->slots;
  return c;
}

TEST(repair, never_raises_the_limit_and_keeps_its_budget) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    moving_case c = moving(seed);
    const experts before = c.slots;
    const auto budget = static_cast<std::uint32_t>(seed % 6);
    const auto out = repaired(c.after, c.layout, c.slots, {.copies_max = budget});
    EXPECT_LE(out.limit_after, out.limit_before) << "seed " << seed;
    EXPECT_GE(out.limit_after, out.bound * (1 - 1e-9)) << "seed " << seed;
    EXPECT_LE(out.moves.size(), budget) << "seed " << seed;
    // What was not moved stays where it was; what was moved is told.
    experts replayed = before;
    for (const slot_move& m : out.moves) {
      EXPECT_EQ(replayed[m.slot], m.replaced) << "seed " << seed;
      replayed[m.slot] = static_cast<std::int32_t>(m.expert);
    }
    EXPECT_EQ(replayed, c.slots) << "seed " << seed;
    const auto count = static_cast<std::uint32_t>(c.after.size());
    const auto t = tables_of(c.slots, count);
    for (std::uint32_t e = 0; e < count; ++e) {
      EXPECT_LT(t.offset[e], t.offset[e + 1]) << "seed " << seed << " loses expert " << e;
      for (std::uint32_t i = t.offset[e] + 1; i < t.offset[e + 1]; ++i)
        EXPECT_NE(c.layout.worker_of(t.slots[i - 1]), c.layout.worker_of(t.slots[i]));
    }
  }
}

// Candidates are few and most are ruled out by bounds: what is chosen must still be what trying
// every single replacement would choose, but for rare cases.
TEST(repair, finds_the_best_single_copy) {
  int equal = 0;
  int cases = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    moving_case c = moving(seed);
    exact_split split;
    const auto limit_of = [&](const experts& slots) {
      return split.solve({.layout = &c.layout, .slots = slots, .loads = c.after});
    };
    const double before = limit_of(c.slots);
    double best = before;
    const auto count = static_cast<std::uint32_t>(c.after.size());
    const auto t = tables_of(c.slots, count);
    for (std::uint32_t s = 0; s < c.slots.size(); ++s) {
      const auto had = static_cast<std::uint32_t>(c.slots[s]);
      if (t.offset[had + 1] - t.offset[had] < 2) continue;
      for (std::uint32_t e = 0; e < count; ++e) {
        if (holds(c.layout, c.slots, c.layout.worker_of(s), e)) continue;
        c.slots[s] = static_cast<std::int32_t>(e);
        best = std::min(best, limit_of(c.slots));
      }
      c.slots[s] = static_cast<std::int32_t>(had);
    }
    if (best > before * (1 - 1e-6)) continue;
    const auto out = repaired(c.after, c.layout, c.slots, {.copies_max = 1, .start = 1, .stop = 1});
    EXPECT_GE(out.limit_after, best * (1 - 1e-9)) << "seed " << seed;
    equal += out.limit_after <= best * (1 + 1e-9) ? 1 : 0;
    ++cases;
  }
  EXPECT_GT(cases, 150);
  EXPECT_GE(equal, cases * 90 / 100) << cases;
}

TEST(repair, leaves_fixed_slots_and_full_workers_alone) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    moving_case c = moving(seed);
    const experts before = c.slots;
    std::vector<std::uint8_t> fixed(c.slots.size());
    for (std::size_t s = 0; s < fixed.size(); ++s) fixed[s] = s % 3 == 0;
    std::vector<std::uint32_t> spare(c.layout.workers(), 1);
    spare[0] = 0;
    const auto out =
        repaired(c.after, c.layout, c.slots, {.copies_max = 32, .fixed = fixed, .spare = spare});
    std::vector<std::uint32_t> copies(c.layout.workers(), 0);
    for (const slot_move& m : out.moves) {
      EXPECT_EQ(fixed[m.slot], 0) << "seed " << seed;
      ++copies[c.layout.worker_of(m.slot)];
    }
    for (std::uint32_t g = 0; g < c.layout.workers(); ++g) EXPECT_LE(copies[g], spare[g]);
    for (std::size_t s = 0; s < fixed.size(); ++s) {
      if (fixed[s] != 0) {
        EXPECT_EQ(c.slots[s], before[s]) << "seed " << seed;
      }
    }
  }
}

TEST(repair, same_loads_again_need_no_move) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    moving_case c = moving(seed);
    EXPECT_TRUE(repaired(c.before, c.layout, c.slots, {}).moves.empty()) << "seed " << seed;
    repaired(c.after, c.layout, c.slots, {.copies_max = 100});
    moving_case twin = moving(seed);
    repaired(twin.after, twin.layout, twin.slots, {.copies_max = 100});
    EXPECT_EQ(twin.slots, c.slots) << "seed " << seed;
  }
}

TEST(repair, leaves_lost_experts_lost_where_slots_are_too_few) {
  const slot_layout layout = *slot_layout::even(3, 9);
  experts slots = k_slots;
  const std::vector<std::uint8_t> live{0, 1, 1};  // six slots for seven experts
  repairer r;
  const auto out = r.repair({.layout = &layout, .slots = {}, .loads = k_loads, .live = live}, slots,
                            {.copies_max = 8});
  EXPECT_LE(out.limit_after, out.limit_before);
  for (const slot_move& m : out.moves) EXPECT_NE(layout.worker_of(m.slot), 0U);
}

TEST(repair, gives_lost_experts_a_slot_on_a_live_worker) {
  const slot_layout layout = *slot_layout::even(3, 9);
  experts slots = k_slots;  // worker 0 alone holds 0, 1 and 2
  const std::vector<std::uint8_t> live{0, 1, 1};
  repairer r;
  const auto moves =
      r.restore_lost({.layout = &layout, .slots = {}, .loads = k_loads, .live = live}, slots);
  ASSERT_EQ(moves.size(), 2U);  // two doubles, 4 and 5, can give way; the hottest come first
  EXPECT_EQ(moves[0].expert, 0U);
  EXPECT_EQ(moves[1].expert, 1U);
  for (const slot_move& m : moves) EXPECT_NE(layout.worker_of(m.slot), 0U);
}

}  // namespace
}  // namespace moetier::eplb
