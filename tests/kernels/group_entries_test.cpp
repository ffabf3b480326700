#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <tuple>
#include <vector>

#include "kernels/backend.hpp"

namespace moetier::kernels {
namespace {

auto order_of(const expert_entry& e) { return std::tie(e.slot, e.region, e.row, e.position); }

std::vector<expert_entry> random_entries(std::size_t rows, std::size_t slots,
                                         std::mt19937& random) {
  std::vector<expert_entry> entries;
  for (std::uint32_t region = 0; region < 3; ++region) {
    for (std::uint32_t row = 0; row < rows; ++row) {
      for (std::uint16_t position = 0; position < 4; ++position) {
        if (random() % 4 == 0) continue;  // no expert at this position
        entries.push_back({region, row, position, static_cast<std::uint16_t>(random() % slots),
                           static_cast<float>(random() % 100)});
      }
    }
  }
  return entries;
}

void expect_grouped(std::vector<expert_entry> entries, std::size_t slots) {
  std::vector<expert_entry> sorted = entries;
  std::sort(sorted.begin(), sorted.end(),
            [](const auto& a, const auto& b) { return order_of(a) < order_of(b); });
  std::vector<std::uint32_t> counts(slots, 99);
  std::vector<expert_entry> scratch(entries.size());
  group_entries(entries, scratch, counts);
  ASSERT_TRUE(std::equal(entries.begin(), entries.end(), sorted.begin(), sorted.end(),
                         [](const auto& a, const auto& b) {
                           return order_of(a) == order_of(b) && a.weight == b.weight;
                         }));
  for (std::size_t s = 0; s < slots; ++s) {
    EXPECT_EQ(counts[s], std::count_if(sorted.begin(), sorted.end(),
                                       [&](const expert_entry& e) { return e.slot == s; }));
  }
}

TEST(group_entries, sorts_by_slot_then_region_row_and_position_and_counts_slots) {
  std::mt19937 random(1);
  for (const std::size_t slots : {1u, 2u, 7u, 64u, 1024u})
    expect_grouped(random_entries(20, slots, random), slots);
}

TEST(group_entries, sorts_rows_that_come_in_any_order) {
  std::mt19937 random(2);
  auto entries = random_entries(20, 5, random);
  std::shuffle(entries.begin(), entries.end(), random);
  expect_grouped(entries, 5);
}

TEST(group_entries, takes_no_entries_and_slots_that_nobody_asks_for) {
  expect_grouped({}, 0);
  expect_grouped({}, 3);
  expect_grouped({{.row = 1, .slot = 2}, {.row = 0, .slot = 2}}, 9);
}

}  // namespace
}  // namespace moetier::kernels
