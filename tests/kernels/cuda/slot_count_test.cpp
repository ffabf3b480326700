#include "kernels/reference/slot_count.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace moetier::kernels {
namespace {

// Outputs start as garbage, so that a test sees whether all of them were written.
struct counted {
  std::vector<std::uint32_t> counts;
  std::uint32_t bad_entries = 77;
  slot_count_status status = slot_count_status::ok;
};

counted count(const std::vector<std::int32_t>& slots, std::uint32_t slot_count) {
  counted out{.counts = std::vector<std::uint32_t>(slot_count, 99)};
  out.status = reference::count_slots({.slots = slots.data(),
                                       .entry_count = static_cast<std::uint32_t>(slots.size()),
                                       .counts = out.counts.data(),
                                       .slot_count = slot_count,
                                       .bad_entries = &out.bad_entries});
  return out;
}

TEST(slot_count, counts_each_slot_and_skips_minus_one) {
  const auto out = count({2, 0, -1, 2, 2, 3, -1}, 4);
  EXPECT_EQ(out.status, slot_count_status::ok);
  EXPECT_EQ(out.counts, (std::vector<std::uint32_t>{1, 0, 3, 1}));
  EXPECT_EQ(out.bad_entries, 0u);
}

TEST(slot_count, writes_zeros_when_there_is_no_entry) {
  const auto out = count({}, 3);
  EXPECT_EQ(out.status, slot_count_status::ok);
  EXPECT_EQ(out.counts, (std::vector<std::uint32_t>{0, 0, 0}));
  EXPECT_EQ(out.bad_entries, 0u);
}

TEST(slot_count, reports_entries_out_of_range_and_counts_the_others) {
  const auto out = count({0, 2, -2, 1, INT32_MIN, INT32_MAX}, 2);
  EXPECT_EQ(out.status, slot_count_status::ok);
  EXPECT_EQ(out.counts, (std::vector<std::uint32_t>{1, 1}));
  EXPECT_EQ(out.bad_entries, 4u);
}

TEST(slot_count, works_at_the_limit_and_refuses_one_slot_more) {
  const auto last = static_cast<std::int32_t>(k_count_slots_max - 1);
  EXPECT_EQ(count({last}, k_count_slots_max).counts.back(), 1u);
  const auto out = count({0}, k_count_slots_max + 1);
  EXPECT_EQ(out.status, slot_count_status::bad_problem);
  EXPECT_EQ(out.bad_entries, 77u);  // untouched
}

TEST(slot_count, refuses_null_pointers_and_a_table_without_slots) {
  std::uint32_t one = 0;
  std::int32_t slot = 0;
  const slot_count_args good{
      .slots = &slot, .entry_count = 1, .counts = &one, .slot_count = 1, .bad_entries = &one};
  EXPECT_TRUE(can_count(good));
  auto bad = good;
  bad.slots = nullptr;
  EXPECT_FALSE(can_count(bad));
  bad.entry_count = 0;
  EXPECT_TRUE(can_count(bad));
  bad = good;
  bad.counts = nullptr;
  EXPECT_FALSE(can_count(bad));
  bad = good;
  bad.bad_entries = nullptr;
  EXPECT_FALSE(can_count(bad));
  bad = good;
  bad.slot_count = 0;
  EXPECT_FALSE(can_count(bad));
}

}  // namespace
}  // namespace moetier::kernels
