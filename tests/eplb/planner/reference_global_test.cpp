#include "eplb/planner/reference_global.hpp"

#include <gtest/gtest.h>

#include "eplb/planner/replication.hpp"
#include "tests/eplb/random_loads.hpp"

namespace moetier::eplb {
namespace {

using loads = std::vector<std::uint64_t>;
using counts = std::vector<std::uint32_t>;
using experts = std::vector<std::int32_t>;

struct vector_row {
  loads w;
  std::uint32_t workers, slots_each;
  counts replicas;
  experts placement;
  std::vector<double> worker_loads;  // only the largest where one is given
};

const loads k_l0{90, 132, 40, 61, 104, 165, 39, 4, 73, 56, 183, 86};
const loads k_l1{20, 107, 104, 64, 19, 197, 187, 157, 172, 86, 16, 27};

const vector_row k_rows[] = {
    {{10, 1, 1, 1}, 2, 3, {3, 1, 1, 1}, {0, 0, 3, 0, 1, 2}, {23.0 / 3, 16.0 / 3}},
    {{0, 0, 0, 0}, 2, 3, {2, 2, 1, 1}, {0, 0, 1, 1, 2, 3}, {0, 0}},
    {{5, 5, 5, 5}, 2, 3, {1, 1, 2, 2}, {0, 2, 3, 1, 2, 3}, {10, 10}},
    {{8, 7, 6, 5, 4, 3, 2, 1},
     4,
     3,
     {2, 2, 2, 2, 1, 1, 1, 1},
     {0, 2, 3, 0, 2, 3, 4, 5, 6, 1, 1, 7},
     {9.5, 9.5, 9, 8}},
    {{100, 1, 1, 1}, 4, 2, {5, 1, 1, 1}, {0, 0, 0, 1, 0, 2, 0, 3}, {40, 21, 21, 21}},
    {{9, 9, 1, 1}, 2, 2, {1, 1, 1, 1}, {0, 2, 1, 3}, {10, 10}},
    {k_l0,
     8,
     2,
     {1, 2, 1, 1, 2, 2, 1, 1, 1, 1, 2, 1},
     {10, 6, 10, 7, 0, 2, 11, 4, 5, 9, 5, 4, 8, 3, 1, 1},
     {138.5}},
    {k_l1,
     8,
     2,
     {1, 1, 1, 1, 1, 2, 2, 2, 2, 1, 1, 1},
     {1, 10, 2, 4, 5, 11, 5, 0, 6, 7, 6, 3, 8, 9, 8, 7},
     {172}},
};

TEST(reference_global, gives_the_published_vectors) {
  for (const vector_row& row : k_rows) {
    const slot_layout layout = *slot_layout::even(row.workers, row.workers * row.slots_each);
    EXPECT_EQ(replicate(row.w, layout.slots()), row.replicas);
    const experts placed = reference_global(row.w, layout);
    EXPECT_EQ(placed, row.placement);
    const auto x = even_loads(row.w, layout, placed);
    if (row.worker_loads.size() == 1) {
      EXPECT_NEAR(*std::max_element(x.begin(), x.end()), row.worker_loads[0], 1e-9);
      continue;
    }
    ASSERT_EQ(x.size(), row.worker_loads.size());
    for (std::size_t g = 0; g < x.size(); ++g) EXPECT_NEAR(x[g], row.worker_loads[g], 1e-9);
  }
}

TEST(reference_global, tells_which_slots_an_expert_has) {
  const replica_tables t = tables_of(experts{0, 0, 3, 0, 1, 2}, 4);
  EXPECT_EQ(t.offset, (counts{0, 3, 4, 5, 6}));
  EXPECT_EQ(t.slots, (counts{0, 1, 3, 4, 5, 2}));
}

TEST(replication, stops_at_the_cap) {
  EXPECT_EQ(replicate(loads{100, 1, 1, 1}, 8, 4), (counts{4, 2, 1, 1}));
  EXPECT_EQ(replicate(loads{100, 1}, 8, 3), (counts{3, 3}));
  EXPECT_EQ(replicate(loads{0, 0}, 8, 3), (counts{3, 3}));
}

TEST(reference_distinct, reaches_the_documented_maximum_with_four_replicas) {
  const slot_layout layout = *slot_layout::even(4, 8);
  const auto x =
      even_loads(loads{100, 1, 1, 1}, layout, reference_distinct(loads{100, 1, 1, 1}, layout));
  EXPECT_DOUBLE_EQ(*std::max_element(x.begin(), x.end()), 26);
}

TEST(reference_distinct, never_doubles_and_leaves_nobody_out) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const auto count = static_cast<std::uint32_t>(1 + seed % 23);
    const auto w = random_loads(k_load_kinds[seed % 5], count, seed);
    const auto workers = static_cast<std::uint32_t>(1 + seed % 7);
    const slot_layout layout = *slot_layout::even(
        workers, std::max(count + static_cast<std::uint32_t>(seed % 11), workers));
    const auto slots = reference_distinct(w, layout);
    const auto t = tables_of(slots, count);
    for (std::uint32_t e = 0; e < count; ++e) {
      EXPECT_LT(t.offset[e], t.offset[e + 1]) << "seed " << seed;
      for (std::uint32_t i = t.offset[e] + 1; i < t.offset[e + 1]; ++i)
        EXPECT_NE(layout.worker_of(t.slots[i - 1]), layout.worker_of(t.slots[i]))
            << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace moetier::eplb
