#include "workers/device/call_layout.hpp"

#include <gtest/gtest.h>

#include "tests/schemas/file/scratch_folder.hpp"
#include "workers/device/device_bill.hpp"

namespace moetier::workers {
namespace {

TEST(buckets, are_powers_of_two_up_to_the_cap) {
  EXPECT_EQ(bucket_of(1, 4096), 1u);
  EXPECT_EQ(bucket_of(2, 4096), 2u);
  EXPECT_EQ(bucket_of(3, 4096), 4u);
  EXPECT_EQ(bucket_of(4, 4096), 4u);
  EXPECT_EQ(bucket_of(65, 4096), 128u);
  EXPECT_EQ(bucket_of(4096, 4096), 4096u);
  EXPECT_EQ(bucket_of(65, 100), 100u);  // a cap that is none
  EXPECT_EQ(bucket_of(1, 1), 1u);
}

TEST(rows_of_a_slot, are_rounded_up_as_coarsely) {
  EXPECT_EQ(rows_per_slot_of(0, 0), 0u);
  EXPECT_EQ(rows_per_slot_of(8, 8), 1u);
  EXPECT_EQ(rows_per_slot_of(9, 8), 2u);
  EXPECT_EQ(rows_per_slot_of(40, 8), 8u);
  EXPECT_EQ(rows_per_slot_of(1, 1), 1u);
}

TEST(call_layout, keeps_every_part_apart_and_aligned) {
  for (const std::uint32_t hidden : {1u, 256u, 2880u, 7168u}) {
    for (const std::uint32_t rows : {1u, 3u, 4096u}) {
      for (const std::uint32_t k : {1u, 8u}) {
        for (const std::uint32_t slots : {1u, 33u, 1024u}) {
          const call_layout l = call_layout_of(hidden, rows, k, slots);
          EXPECT_GE(l.status, l.live + 4);
          EXPECT_GE(l.pages, l.status + 4);
          EXPECT_GE(l.slot_ids, l.pages + slots * 8);
          EXPECT_GE(l.weights, l.slot_ids + std::size_t{rows} * k * 4);
          EXPECT_GE(l.rows, l.weights + std::size_t{rows} * k * 4);
          EXPECT_EQ(l.pages % 8, 0u);
          EXPECT_EQ(l.slot_ids % 16, 0u);
          EXPECT_EQ(l.weights % 16, 0u);
          EXPECT_EQ(l.rows % 16, 0u);
          EXPECT_EQ(l.row_pitch % 16, 0u);
          EXPECT_GE(l.row_pitch, std::size_t{hidden} * 4);
          EXPECT_EQ(in_bytes(l, rows), l.rows + rows * l.row_pitch);
        }
      }
    }
  }
}

TEST(device_bill, is_refused_with_both_numbers_and_its_parts) {
  const device_bill bill{.pages = 700, .workspace = 200, .calls = 100};
  EXPECT_EQ(sentence(check_bill(bill, 1000)), "ok");
  EXPECT_EQ(sentence(check_bill(bill, 999)),
            "the device (pages 700, workspace 200, calls 100) needs 1000 bytes; 999 are available");
  EXPECT_EQ(check_bill(bill, 0).error().code, status::no_memory);
}

}  // namespace
}  // namespace moetier::workers
