#include "eplb/planner/reference_hierarchical.hpp"

#include <gtest/gtest.h>

#include "eplb/balance/bound.hpp"
#include "eplb/planner/reference_global.hpp"

namespace moetier::eplb {
namespace {

using loads = std::vector<std::uint64_t>;
using experts = std::vector<std::int32_t>;

constexpr hierarchy k_published{.groups = 4, .nodes = 2, .workers = 8, .slots = 16};

void expect_layer(const loads& w, const experts& slots, double most, double bound) {
  const auto placed = reference_hierarchical(w, k_published);
  ASSERT_TRUE(placed.has_value()) << placed.error().text;
  EXPECT_EQ(*placed, slots);
  const auto x = even_loads(w, *slot_layout::even(8, 16), *placed);
  EXPECT_DOUBLE_EQ(*std::max_element(x.begin(), x.end()), most);
  EXPECT_DOUBLE_EQ(lower_bound(w, 16, 8), bound);
}

TEST(reference_hierarchical, gives_the_published_vectors) {
  expect_layer({90, 132, 40, 61, 104, 165, 39, 4, 73, 56, 183, 86},
               {5, 6, 5, 7, 8, 4, 3, 4, 10, 9, 10, 2, 0, 1, 11, 1}, 156, 129.125);
  expect_layer({20, 107, 104, 64, 19, 197, 187, 157, 172, 86, 16, 27},
               {7, 10, 6, 8, 6, 11, 8, 9, 2, 4, 5, 1, 5, 0, 3, 1}, 179.5, 144.5);
}

TEST(reference_hierarchical, replicates_the_first_of_equals) {
  const auto placed = reference_hierarchical(loads{5, 5, 5, 5}, {1, 1, 2, 6});
  ASSERT_TRUE(placed.has_value());
  EXPECT_EQ(std::count(placed->begin(), placed->end(), 0), 2);
  EXPECT_EQ(std::count(placed->begin(), placed->end(), 1), 2);
}

std::string refusal(hierarchy h) {
  const auto placed = reference_hierarchical(loads(12, 1), h);
  return placed ? "placed" : placed.error().text;
}

TEST(reference_hierarchical, names_what_does_not_divide) {
  EXPECT_EQ(refusal({5, 1, 2, 12}), "placement: 12 experts do not divide into 5 groups");
  EXPECT_EQ(refusal({4, 3, 3, 12}), "placement: 4 groups do not divide over 3 nodes");
  EXPECT_EQ(refusal({4, 2, 3, 12}), "placement: 3 workers do not divide over 2 nodes");
  EXPECT_EQ(refusal({4, 2, 8, 12}), "placement: 12 slots do not divide over 8 workers");
  EXPECT_EQ(refusal({4, 2, 2, 10}), "placement: 10 slots for 12 experts");
  EXPECT_EQ(refusal({1, 1, 3, 12}), "placed");
}

}  // namespace
}  // namespace moetier::eplb
