#include "kernels/reference/gather_rows.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "kernels/quant/row_quantiser.hpp"
#include "schemas/base/small_floats.hpp"
#include "tests/kernels/cuda/gather_case.hpp"

namespace moetier::kernels::cuda {
namespace {

// Where a reader of the table finds entry e: the tile and the row in it.
struct place {
  row_tile tile;
  std::uint32_t q = 0;
};
std::vector<std::pair<std::int32_t, place>> places_of(const tiles_case& table) {
  std::vector<std::pair<std::int32_t, place>> places;
  for (std::uint32_t t = 0; t < table.header.tiles; ++t) {
    const row_tile& tile = table.tiles[t];
    for (int q = 0; q < tile.rows; ++q)
      places.push_back({table.entry_of[static_cast<std::size_t>(tile.first_group * 8 + q)],
                        {tile, static_cast<std::uint32_t>(q)}});
  }
  return places;
}
std::uint32_t u(std::int32_t x) { return static_cast<std::uint32_t>(x); }

TEST(gather_rows, puts_each_column_where_the_geometry_says) {
  gather_case c({.format = gemm_format::bf16, .rows = 70, .k_in = 2, .hidden_size = 192});
  ASSERT_TRUE(reference::gather_rows(c.args(), gemm_format::bf16).ok());
  const auto places = places_of(c.table);
  EXPECT_EQ(places.size(), c.table.header.entries);
  for (const auto& [entry, at] : places) {
    const std::byte* const row = c.rows.data() + u(entry) / 2 * c.pitch;
    for (std::uint32_t k = 0; k < 192; ++k) {
      const auto offset = activation_offset(gemm_format::bf16, 3, u(at.tile.first_group),
                                            u(at.tile.groups), at.q, k);
      EXPECT_EQ(std::memcmp(c.x.data() + offset, row + k * 2, 2), 0) << entry << " " << k;
    }
  }
}

TEST(gather_rows, quantises_rows_with_the_scales_behind_the_codes_of_a_block) {
  gather_case c({.row_as = row_type::f32, .rows = 70, .hidden_size = 256, .slots = 1});
  ASSERT_TRUE(reference::gather_rows(c.args(), gemm_format::fp8).ok());
  for (const auto& [entry, at] : places_of(c.table)) {
    std::vector<float> row(256);
    std::memcpy(row.data(), c.rows.data() + u(entry) * c.pitch, 1024);
    std::vector<std::uint8_t> codes(256);
    float scales[2];
    quantise_row(row.data(), 256, codes.data(), scales);
    for (std::uint32_t k = 0; k < 256; ++k) {
      const auto offset = activation_offset(gemm_format::fp8, 2, u(at.tile.first_group),
                                            u(at.tile.groups), at.q, k);
      EXPECT_EQ(c.x.data()[offset], static_cast<std::byte>(codes[k]));
    }
    for (std::uint32_t b = 0; b < 2; ++b) {
      float scale = 0;
      std::memcpy(&scale,
                  c.x.data() + activation_scale_offset(2, u(at.tile.first_group), u(at.tile.groups),
                                                       at.q, b),
                  4);
      EXPECT_EQ(scale, scales[b]);
    }
  }
}

TEST(gather_rows, leaves_places_without_a_row_as_they_are) {
  gather_case c({.rows = 3, .hidden_size = 128, .slots = 1});
  const auto live = c.table.header.entries;
  ASSERT_TRUE(reference::gather_rows(c.args(), gemm_format::fp8).ok());
  ASSERT_LT(live, 8u);
  for (std::uint32_t q = live; q < 8; ++q)
    EXPECT_EQ(c.x.data()[activation_offset(gemm_format::fp8, 1, 0, 1, q, 5)], std::byte{0xcc});
}

TEST(gather_rows, zeroes_live_rows_that_ask_nothing_when_told_to) {
  for (const bool told : {true, false}) {
    gather_case c({.rows = 60, .hidden_size = 128, .zero_idle = told});
    c.table.rows_live = 50;
    c.table.slot_ids[7] = c.table.slot_ids[55] = -1;
    c.table.slot_ids[8] = 0;
    c.table.group();
    ASSERT_TRUE(reference::gather_rows(c.args(), gemm_format::fp8).ok());
    const auto all = [&](std::uint32_t r, std::byte b) {
      const std::byte* const row = c.out.data() + r * c.out_pitch();
      return std::all_of(row, row + 512, [b](std::byte x) { return x == b; }) &&
             row[512] == std::byte{0xcc};  // the pitch's pad
    };
    EXPECT_TRUE(all(7, told ? std::byte{0} : std::byte{0xcc}));
    EXPECT_TRUE(all(8, std::byte{0xcc}));
    EXPECT_TRUE(all(55, std::byte{0xcc}));
  }
}

TEST(gather_rows, refuses_what_does_not_fit_blocks_or_vectors) {
  gather_case c({.rows = 4, .hidden_size = 192});
  EXPECT_TRUE(can_gather_rows(c.args(), gemm_format::bf16));
  EXPECT_FALSE(can_gather_rows(c.args(), gemm_format::fp8));
  const auto refused = [&](auto&& change) {
    gather_rows_args args = c.args();
    args.slot_ids = c.table.slot_ids.data();
    change(args);
    return !reference::gather_rows(args, gemm_format::bf16).ok();
  };
  EXPECT_FALSE(refused([](gather_rows_args&) {}));
  EXPECT_TRUE(refused([](gather_rows_args& a) { a.rows += 8; }));
  EXPECT_TRUE(refused([](gather_rows_args& a) { a.row_pitch_bytes += 8; }));
  EXPECT_TRUE(refused([](gather_rows_args& a) { a.row_pitch_bytes = 368; }));
  EXPECT_TRUE(refused([](gather_rows_args& a) { a.x = nullptr; }));
  EXPECT_TRUE(refused([](gather_rows_args& a) { a.tile_rows = 24; }));
  EXPECT_TRUE(refused([](gather_rows_args& a) { a.k_in = 2; }));  // zeros need one position
  EXPECT_TRUE(refused([](gather_rows_args& a) { a.out = nullptr; }));
  EXPECT_TRUE(refused([&](gather_rows_args& a) {
    a.slot_ids = nullptr;
    a.k_in = 2;
    a.rows_cap = 512;
    a.tiles.place_of = c.table.place_of.data();
    a.rows_live = nullptr;
  }));
}

TEST(gather_rows_launch, cuts_tiles_into_short_parts_where_there_is_much_to_do) {
  gather_rows_args args{.rows_cap = 16384, .hidden_size = 7168, .slots = 32, .tile_rows = 128};
  EXPECT_EQ(
      plan_gather_rows(args, gemm_format::fp8, {}),
      (gather_rows_plan{
          .grid = 528, .blocks = 56, .chunks = 7, .tiles = 160, .part_groups = 2, .parts = 8}));
  args.tile_rows = 64;
  args.rows_cap = 1024;  // 48 tiles, 7 chunks: 336 blocks of whole tiles
  EXPECT_EQ(plan_gather_rows(args, gemm_format::fp8, {}).part_groups, 8u);
  args.rows_cap = 256;  // 36 tiles: 504 blocks of half tiles
  EXPECT_EQ(plan_gather_rows(args, gemm_format::fp8, {}).part_groups, 4u);
  args.rows_cap = 64;
  args.slots = 1;  // 2 tiles
  EXPECT_EQ(plan_gather_rows(args, gemm_format::fp8, {}).part_groups, 2u);
  args.rows_cap = 1;
  EXPECT_EQ(plan_gather_rows(args, gemm_format::fp8, {}).grid, 4u * 7);
  EXPECT_EQ(plan_gather_rows(args, gemm_format::bf16, {}).blocks, 112u);
}

TEST(gather_rows_launch, goes_by_row_where_many_rows_have_several_entries) {
  std::int32_t place = 0;
  gather_rows_args args{
      .rows_cap = 514, .k_in = 8, .hidden_size = 2112, .slots = 32, .tile_rows = 128};
  const auto plan = [&] { return plan_gather_rows(args, gemm_format::bf16, {}); };
  EXPECT_EQ(plan().way, gather_way::by_chunk);
  args.tiles.place_of = &place;
  // 129 times four rows, 5 chunks: 645 warps.
  EXPECT_EQ(plan(),
            (gather_rows_plan{.way = gather_way::by_row, .grid = 81, .blocks = 33, .chunks = 5}));
  args.rows_cap = 100000;
  EXPECT_EQ(plan().grid, 528u);
  args.rows_cap = 511;
  EXPECT_EQ(plan().way, gather_way::by_chunk);
  args.rows_cap = 512;
  EXPECT_EQ(plan().way, gather_way::by_row);
  args.k_in = 1;
  EXPECT_EQ(plan().way, gather_way::by_tile);
}

TEST(gather_rows_launch, gives_every_warp_groups_where_two_share_a_block_of_k) {
  const gather_rows_args args{
      .rows_cap = 100000, .k_in = 8, .hidden_size = 2048, .slots = 32, .tile_rows = 128};
  EXPECT_EQ(plan_gather_rows(args, gemm_format::fp8, {}).part_groups, 4u);
  EXPECT_EQ(plan_gather_rows(args, gemm_format::fp8, {}).chunks, 4u);
  EXPECT_EQ(plan_gather_rows(args, gemm_format::bf16, {}).part_groups, 2u);
}

TEST(gather_rows_launch, reaches_every_group_of_every_tile) {
  for (const std::uint32_t tile_rows : {8u, 16u, 32u, 64u, 128u}) {
    for (const std::uint32_t rows : {1u, 100u, 5000u, 100000u}) {
      for (const std::uint32_t hidden : {128u, 1152u, 7168u}) {
        const gather_rows_args args{
            .rows_cap = rows, .hidden_size = hidden, .slots = 9, .tile_rows = tile_rows};
        const auto plan = plan_gather_rows(args, gemm_format::fp8, {.multiprocessors = 132});
        EXPECT_GE(plan.part_groups * plan.parts, tile_rows / 8);
        EXPECT_LT(plan.part_groups * (plan.parts - 1), tile_rows / 8);
        EXPECT_GE(plan.chunks * k_gather_warps, plan.blocks);
        EXPECT_EQ(plan.tiles, tiles_max(rows, 9, tile_rows));
        EXPECT_LE(plan.grid, 132u * 4);
      }
    }
  }
}

}  // namespace
}  // namespace moetier::kernels::cuda
