#include "kernels/reference/row_tiles.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/kernels/cuda/tiles_case.hpp"

namespace moetier::kernels::cuda {
namespace {

using ints = std::vector<std::int32_t>;

TEST(row_tiles, lie_segment_after_segment_with_entries_in_ascending_number) {
  tiles_case c({2, 0, -1, 2, 2, 3}, 2, 4, 64);
  c.group();
  EXPECT_EQ(c.status, 0u);
  EXPECT_EQ(c.header.tiles, 3u);
  EXPECT_EQ(c.header.segments, 3u);
  EXPECT_EQ(c.header.groups, 3u);
  EXPECT_EQ(c.header.entries, 5u);
  EXPECT_EQ(ints(c.entry_of.begin(), c.entry_of.begin() + 24),
            (ints{1,  -1, -1, -1, -1, -1, -1, -1, 0,  3,  4,  -1,
                  -1, -1, -1, -1, 5,  -1, -1, -1, -1, -1, -1, -1}));
  EXPECT_EQ(c.segment_tile, (ints{0, 1, 2, 3, k_tiles_poison}));
  EXPECT_EQ(ints(c.tile_segment.begin(), c.tile_segment.begin() + 3), (ints{0, 1, 2}));
  EXPECT_EQ(c.place_of, (ints{1 << 7, 0, -1, 1 << 7 | 1, 1 << 7 | 2, 2 << 7}));
  EXPECT_EQ(c.tiles[1].slot, 2);
  EXPECT_EQ(c.tiles[1].first_group, 1);
  EXPECT_EQ(c.tiles[1].groups, 1);
  EXPECT_EQ(c.tiles[1].rows, 3);
}

// Every place of every tile, for any counts: the law that all readers of the table rely on.
void expect_law(tiles_case& c) {
  std::uint32_t tile = 0;
  std::uint32_t group = 0;
  std::uint32_t segment = 0;
  const std::uint32_t entries = std::min(c.rows_live, c.rows_cap) * c.k_in;
  for (std::uint32_t slot = 0; slot < c.slots(); ++slot) {
    ints wanted;
    for (std::uint32_t e = 0; e < entries; ++e) {
      if (c.slot_ids[e] == static_cast<std::int32_t>(slot)) wanted.push_back(static_cast<int>(e));
    }
    if (wanted.empty() || c.pages[slot] == nullptr) continue;
    EXPECT_EQ(c.segment_tile[segment], static_cast<int>(tile));
    for (std::size_t at = 0; at < wanted.size(); at += c.tile_rows) {
      const std::size_t rows = std::min<std::size_t>(c.tile_rows, wanted.size() - at);
      const std::size_t groups = (rows + 7) / 8;
      EXPECT_EQ(c.tiles[tile].slot, static_cast<int>(slot));
      EXPECT_EQ(c.tiles[tile].first_group, static_cast<int>(group));
      EXPECT_EQ(c.tiles[tile].groups, static_cast<int>(groups));
      EXPECT_EQ(c.tiles[tile].rows, static_cast<int>(rows));
      EXPECT_EQ(c.tile_segment[tile], static_cast<int>(segment));
      for (std::size_t q = 0; q < groups * 8; ++q) {
        EXPECT_EQ(c.entry_of[group * 8 + q], q < rows ? wanted[at + q] : -1);
        if (q < rows) {
          EXPECT_EQ(c.place_of[static_cast<std::size_t>(wanted[at + q])],
                    static_cast<int>(tile << k_place_row_bits | q));
        }
      }
      ++tile;
      group += static_cast<std::uint32_t>(groups);
    }
    ++segment;
  }
  EXPECT_EQ(c.segment_tile[segment], static_cast<int>(tile));
  EXPECT_EQ(c.header.tiles, tile);
  EXPECT_EQ(c.header.segments, segment);
  EXPECT_EQ(c.header.groups, group);
}

TEST(row_tiles, hold_for_counts_around_tiles_and_groups) {
  for (const std::uint32_t tile_rows : {8u, 16u, 32u, 64u, 128u}) {
    for (const std::uint32_t rows : {1u, 7u, 8u, 9u, 63u, 64u, 65u, 127u, 128u, 129u, 400u}) {
      SCOPED_TRACE(testing::Message() << rows << " rows in tiles of " << tile_rows);
      tiles_case c(random_slots(rows, rows * 3, 5), 3, 5, tile_rows);
      expect_law(c.group());
      EXPECT_EQ(c.status, 0u);
    }
  }
}

TEST(row_tiles, fit_the_bounds_of_the_table_for_one_slot_or_many) {
  for (const std::uint32_t slots : {1u, 3u, 1024u}) {
    tiles_case c(random_slots(slots, 1000, slots, 0), 1, slots, 64);
    c.group();
    EXPECT_LE(c.header.tiles, tiles_max(1000, slots, 64));
    EXPECT_LE(c.header.groups, groups_max(1000, slots));
    expect_law(c);
  }
}

TEST(row_tiles, do_not_look_behind_the_live_rows) {
  tiles_case c({0, 1, 99, 99}, 2, 2, 64);
  c.rows_live = 1;
  c.group();
  EXPECT_EQ(c.status, 0u);
  EXPECT_EQ(c.header.entries, 2u);
  EXPECT_EQ(c.place_of[2], k_tiles_poison);
  c.rows_live = 77;  // more than the cap: the cap counts
  c.rows_cap = 1;
  c.group();
  EXPECT_EQ(c.header.entries, 2u);
}

TEST(row_tiles, are_none_when_nothing_is_live) {
  for (const bool masked : {false, true}) {
    tiles_case c(masked ? ints{-1, -1} : ints{0, 1}, 1, 2, 64);
    if (!masked) c.rows_live = 0;
    c.group();
    EXPECT_EQ(c.header.tiles, 0u);
    EXPECT_EQ(c.header.segments, 0u);
    EXPECT_EQ(c.header.groups, 0u);
    EXPECT_EQ(c.header.entries, 0u);
    EXPECT_EQ(c.segment_tile[0], 0);
    EXPECT_EQ(c.entry_of[0], k_tiles_poison);
  }
}

TEST(row_tiles, come_without_places_of_entries_where_nobody_wants_them) {
  tiles_case c({1, 0}, 1, 2, 64);
  row_tiles_args args = c.args();
  args.tiles.place_of = nullptr;
  ASSERT_TRUE(reference::make_row_tiles(args).ok());
  EXPECT_EQ(c.header.entries, 2u);
  EXPECT_EQ(c.place_of, (ints{k_tiles_poison, k_tiles_poison}));
}

TEST(row_tiles, report_the_first_bad_slot_and_drop_its_entries) {
  tiles_case c({1, 3, 0, -2, 1}, 1, 3, 64);
  c.pages[0] = nullptr;
  c.group();
  EXPECT_EQ(c.status, static_cast<std::uint32_t>(device_failure::bad_slot) | 3u << 8);
  EXPECT_EQ(c.header.entries, 2u);
  EXPECT_EQ(c.entry_of[0], 0);
  EXPECT_EQ(c.entry_of[1], 4);

  tiles_case empty({0}, 1, 3, 64);
  empty.pages[0] = nullptr;
  empty.group();
  EXPECT_EQ(empty.status, static_cast<std::uint32_t>(device_failure::bad_slot));
}

TEST(row_tiles, refuse_what_no_version_takes) {
  tiles_case c({0}, 1, 1, 64);
  EXPECT_TRUE(can_make_row_tiles(c.args()));
  const auto refused = [&](auto&& change) {
    row_tiles_args args = c.args();
    change(args);
    return !reference::make_row_tiles(args).ok();
  };
  EXPECT_TRUE(refused([](row_tiles_args& a) { a.slots = 0; }));
  EXPECT_TRUE(refused([](row_tiles_args& a) { a.slots = k_row_tiles_slots_max + 1; }));
  EXPECT_TRUE(refused([](row_tiles_args& a) { a.tile_rows = 96; }));
  EXPECT_TRUE(refused([](row_tiles_args& a) { a.k_in = 0; }));
  EXPECT_TRUE(refused([](row_tiles_args& a) { a.rows_cap = k_row_tiles_entries_max + 1; }));
  EXPECT_TRUE(refused([](row_tiles_args& a) { a.slot_ids = nullptr; }));
  EXPECT_TRUE(refused([](row_tiles_args& a) { a.rows_live = nullptr; }));
  EXPECT_TRUE(refused([](row_tiles_args& a) { a.pages = nullptr; }));
  EXPECT_TRUE(refused([](row_tiles_args& a) { a.status = nullptr; }));
  EXPECT_TRUE(refused([](row_tiles_args& a) { a.tiles.entry_of = nullptr; }));
  EXPECT_TRUE(refused([](row_tiles_args& a) {
    a.rows_cap = 8193;
    a.scratch_bytes = 16;
  }));
  row_tiles_args none = c.args();
  none.rows_cap = 0;
  none.slot_ids = nullptr;
  EXPECT_TRUE(can_make_row_tiles(none));
}

TEST(row_tiles_launch, is_one_block_up_to_8192_entries_and_at_most_128_above) {
  EXPECT_EQ(plan_row_tiles(0, 1), (row_tiles_plan{.shared_bytes = 8 * 8 * 2 + 256}));
  EXPECT_EQ(plan_row_tiles(1024, 32), (row_tiles_plan{.threads = 1024,
                                                      .warps = 32,
                                                      .count_rows = 32,
                                                      .slot_bits = 6,
                                                      .shared_bytes = 32 * 32 * 2 + 8192}));
  EXPECT_EQ(plan_row_tiles(64, 1024).threads, 1024u);  // a thread a slot
  EXPECT_EQ(plan_row_tiles(64, 1024).warps, 2u);       // a warp 32 entries
  EXPECT_EQ(plan_row_tiles(1024, 1024).warps, 8u);     // many slots: fewer counts
  EXPECT_EQ(plan_row_tiles(1024, 1024).rounds, 4u);
  EXPECT_EQ(plan_row_tiles(8192, 32).launches, 1u);
  EXPECT_EQ(plan_row_tiles(8192, 32).rounds, 8u);
  const row_tiles_plan two = plan_row_tiles(8193, 32);
  EXPECT_EQ(two.launches, 2u);
  EXPECT_EQ(two.blocks, 9u);
  EXPECT_EQ(two.rounds, 1u);
  EXPECT_EQ(plan_row_tiles(131072, 1024).blocks, 128u);
  const row_tiles_plan most = plan_row_tiles(k_row_tiles_entries_max, 1024);
  EXPECT_EQ(most.blocks, 128u);
  EXPECT_EQ(most.rounds, 8u);
}

TEST(row_tiles_launch, votes_on_bits_that_tell_all_slots_and_none_apart) {
  for (std::uint32_t slots = 1; slots <= 1024; ++slots)
    EXPECT_LE(slots, (1u << plan_row_tiles(5, slots).slot_bits) - 1);
}

TEST(row_tiles_launch, covers_every_entry_within_threads_and_shared_memory) {
  for (const std::uint32_t slots : {1u, 9u, 32u, 257u, 1024u}) {
    for (std::uint64_t entries = 0; entries <= k_row_tiles_entries_max;
         entries = entries * 5 / 3 + 1) {
      const row_tiles_plan plan = plan_row_tiles(entries, slots);
      EXPECT_GE(std::uint64_t{plan.blocks} * plan.warps * 32 * plan.rounds, entries);
      EXPECT_GE(plan.threads, slots);
      EXPECT_GE(plan.threads, plan.warps * 32);
      EXPECT_LE(plan.threads, 1024u);
      EXPECT_LE(plan.rounds, k_row_tiles_rounds_max);
      EXPECT_GE(plan.count_rows, plan.warps);
      EXPECT_LE(plan.shared_bytes + 40 * 1024, 227u * 1024);
      if (plan.launches == 2) {
        EXPECT_GE(row_tiles_scratch_bytes(entries, slots),
                  std::size_t{plan.blocks} * row_tiles_pitch(slots) * 2);
      }
    }
  }
}

TEST(row_tiles_launch, needs_scratch_that_grows_with_entries_and_slots) {
  EXPECT_EQ(row_tiles_scratch_bytes(8192, 1024), 0u);
  std::size_t before = 0;
  for (std::uint64_t entries = 1; entries <= k_row_tiles_entries_max; entries += 777) {
    const std::size_t bytes = row_tiles_scratch_bytes(entries, 100);
    EXPECT_GE(bytes, before);
    EXPECT_GE(row_tiles_scratch_bytes(entries, 105), bytes);
    before = bytes;
  }
}

}  // namespace
}  // namespace moetier::kernels::cuda
