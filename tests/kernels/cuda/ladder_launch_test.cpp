#include "kernels/cuda/ladder_launch.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "kernels/cuda/ladder_walk.hpp"

namespace moetier::kernels::cuda {
namespace {

constexpr device_size k_h200{.multiprocessors = 132, .shared_bytes_max = 232448};
constexpr gemm_shape k_dsv3{
    .hidden_size = 7168, .intermediate_size = 2048, .format = gemm_format::fp8};

gemm_shape shape(gemm_format format, std::uint32_t hidden, std::uint32_t intermediate) {
  return {.hidden_size = hidden, .intermediate_size = intermediate, .format = format};
}

ladder_launch planned(const gemm_shape& s, std::uint32_t tile_rows = 8) {
  const auto l = plan_ladder(s, tile_rows, 64, k_h200);
  EXPECT_TRUE(l.has_value());
  return l.value_or(ladder_launch{});
}

// ---- the plan

TEST(ladder_launch, plans_one_row_of_a_deepseek_expert) {
  EXPECT_EQ(to_string(planned(k_dsv3)),
            "fp8 ladder: 132 blocks x 384 threads, rows 8, 6 stages of 34816 B, 3 of fc1 in "
            "flight, shared 222208 B; fc1 16 pairs x 56 blocks in 8 chunks of 7; fc2 28 pairs x 16 "
            "blocks in 4 chunks of 4; split up to 132 groups; 624 counters, partials 12976128 B");
}

TEST(ladder_launch, fits_shared_memory_of_every_shape_up_to_the_limit) {
  for (const auto format : {gemm_format::fp8, gemm_format::bf16}) {
    for (const std::uint32_t size : {128u, 2880u / 64 * 128, 7168u, 14336u, 16384u}) {
      for (std::uint32_t rows = 8; rows <= 64; rows += 8) {
        SCOPED_TRACE(testing::Message() << size << " columns, " << rows << " rows");
        const auto l = planned(shape(format, size, size), rows);
        EXPECT_LE(l.shared_bytes, k_h200.shared_bytes_max);
        EXPECT_GE(l.stages, 3u);
        EXPECT_LE(l.stages, k_ladder_stages_max);
        EXPECT_LE(l.fc1_stages_in_flight, l.stages);
        // Operands lie at multiples of 1024, bulk copies at multiples of 16.
        EXPECT_EQ(l.ring_at % 1024, 0u);
        EXPECT_EQ(l.stage_bytes % 1024, 0u);
        EXPECT_EQ(l.scales_at % 16, 0u);
        EXPECT_EQ(l.scale_bytes % 16, 0u);
        EXPECT_EQ(l.staging_at % 16, 0u);
        // Nothing overlaps.
        EXPECT_LE(l.scales_at + k_ladder_records * l.scale_bytes, l.staging_at);
        EXPECT_LE(l.staging_at + rows * k_ladder_staging_pitch * 4, l.ring_at);
        EXPECT_GE(l.stage_bytes, 2 * k_tile_bytes + rows / 8 * group_bytes(format));
        EXPECT_EQ(l.ring_at + l.stages * l.stage_bytes, l.shared_bytes);
      }
    }
  }
}

TEST(ladder_launch, refuses_row_tiles_that_are_no_whole_groups_or_too_high) {
  for (const std::uint32_t rows : {0u, 4u, 12u, 65u, 72u})
    EXPECT_FALSE(plan_ladder(k_dsv3, rows, 64, k_h200).has_value()) << rows;
}

TEST(ladder_launch, refuses_shapes_that_are_no_whole_blocks) {
  EXPECT_FALSE(plan_ladder(shape(gemm_format::fp8, 192, 128), 8, 64, k_h200).has_value());
  EXPECT_FALSE(plan_ladder(shape(gemm_format::fp8, 128, 192), 8, 64, k_h200).has_value());
  EXPECT_FALSE(plan_ladder(shape(gemm_format::bf16, 96, 64), 8, 64, k_h200).has_value());
  EXPECT_FALSE(plan_ladder(shape(gemm_format::bf16, 0, 64), 8, 64, k_h200).has_value());
  EXPECT_TRUE(plan_ladder(shape(gemm_format::bf16, 192, 64), 8, 64, k_h200).has_value());
}

TEST(ladder_launch, refuses_a_table_without_room_for_a_tile) {
  EXPECT_FALSE(plan_ladder(k_dsv3, 8, 0, k_h200).has_value());
  EXPECT_TRUE(plan_ladder(k_dsv3, 8, 1, k_h200).has_value());
}

TEST(ladder_launch, refuses_biases_in_fp8) {
  auto biased = k_dsv3;
  biased.bias = true;
  EXPECT_FALSE(plan_ladder(biased, 8, 64, k_h200).has_value());
}

TEST(ladder_launch, refuses_a_device_without_room_for_two_stages) {
  auto small = k_h200;
  small.shared_bytes_max = planned(k_dsv3).ring_at + 2 * planned(k_dsv3).stage_bytes;
  EXPECT_EQ(plan_ladder(k_dsv3, 8, 64, small).value_or(ladder_launch{}).stages, 2u);
  small.shared_bytes_max -= 1;
  EXPECT_FALSE(plan_ladder(k_dsv3, 8, 64, small).has_value());
}

TEST(ladder_launch, cuts_k_into_chunks_that_are_never_empty) {
  for (std::uint32_t blocks = 1; blocks <= 256; ++blocks) {
    for (const std::uint32_t least : {4u, 7u}) {
      SCOPED_TRACE(testing::Message() << blocks << " blocks, at least " << least);
      const auto k = cut_k(blocks, least);
      EXPECT_GE(k.chunks, 1u);
      EXPECT_LE(k.chunks, k_ladder_chunks_max);
      EXPECT_LT((k.chunks - 1) * k.chunk_blocks, blocks);
      EXPECT_GE(k.chunks * k.chunk_blocks, blocks);
      EXPECT_TRUE(k.chunks == 1 || k.chunk_blocks >= least);
    }
  }
}

// ---- the walk

// Every block of K of every tile and pair, exactly once, and what a unit says of itself.
void expect_whole_walk(const ladder_launch& l, std::uint32_t tiles, std::uint32_t groups) {
  const auto walk = walk_of(l, tiles, groups);
  const auto blocks_of = [&](const ladder_product& p) {
    return std::vector<int>(std::size_t{tiles} * p.pairs * p.k.blocks);
  };
  std::vector<int> seen[2] = {blocks_of(l.fc1), blocks_of(l.fc2)};
  bool fc2_began = false;
  for (std::uint32_t n = 0; n < walk.units; ++n) {
    const auto u = unit_at(l, walk, n);
    ASSERT_NE(u.phase, ladder_phase::none);
    const bool fc2 = u.phase == ladder_phase::fc2;
    EXPECT_TRUE(fc2 || !fc2_began) << "a unit of FC1 behind one of FC2 could be waited for by it";
    fc2_began = fc2_began || fc2;
    const auto& p = fc2 ? l.fc2 : l.fc1;
    ASSERT_LT(u.tile, tiles);
    ASSERT_LT(u.pair, p.pairs);
    EXPECT_EQ(u.strips, u.pair + 1 == p.pairs && p.strips % 2 == 1 ? 1u : 2u);
    EXPECT_EQ(u.first_block, u.chunk * p.k.chunk_blocks);
    ASSERT_LT(u.first_block, u.end_block);
    ASSERT_LE(u.end_block, p.k.blocks);
    EXPECT_TRUE(u.parts == 1 || u.parts == p.k.chunks);
    for (std::uint32_t k = u.first_block; k < u.end_block; ++k)
      ++seen[fc2 ? 1 : 0][(std::size_t{u.tile} * p.pairs + u.pair) * p.k.blocks + k];
  }
  for (const auto& phase : seen)
    for (const int times : phase) ASSERT_EQ(times, 1);
  EXPECT_EQ(unit_at(l, walk, walk.units).phase, ladder_phase::none);
  EXPECT_EQ(unit_at(l, walk, walk.units + 131).phase, ladder_phase::none);
}

TEST(ladder_walk, covers_every_block_once_whole_or_split) {
  for (const auto format : {gemm_format::fp8, gemm_format::bf16})
    for (const auto& [hidden, intermediate] : {std::pair{7168u, 2048u}, std::pair{2048u, 768u},
                                               std::pair{128u, 128u}, std::pair{384u, 640u}})
      for (const std::uint32_t tiles : {1u, 2u, 7u, 8u, 33u}) {
        SCOPED_TRACE(testing::Message() << hidden << " x " << intermediate << ", " << tiles);
        expect_whole_walk(planned(shape(format, hidden, intermediate)), tiles, tiles);
      }
  expect_whole_walk(planned(shape(gemm_format::bf16, 192, 64)), 3, 5);
  expect_whole_walk(planned(shape(gemm_format::bf16, 2880, 2880)), 4, 4);
}

TEST(ladder_walk, has_no_unit_without_tiles) {
  const auto l = planned(k_dsv3);
  const auto walk = walk_of(l, 0, 0);
  EXPECT_EQ(walk.units, 0u);
  EXPECT_EQ(unit_at(l, walk, 0).phase, ladder_phase::none);
}

TEST(ladder_walk, splits_where_whole_units_leave_most_of_the_grid_idle) {
  const auto l = planned(k_dsv3);
  EXPECT_EQ(walk_of(l, 1, 1).fc1_parts, 8u);
  EXPECT_EQ(walk_of(l, 1, 1).fc2_parts, 4u);
  EXPECT_EQ(walk_of(l, 3, 3).fc2_parts, 1u);  // 84 units of 16 blocks: nothing left to gain
  EXPECT_EQ(walk_of(l, 7, 7).fc1_parts, 8u);
  EXPECT_EQ(walk_of(l, 9, 9).fc1_parts, 1u);  // 144 units fill the grid
}

TEST(ladder_walk, never_splits_beyond_the_partials_room) {
  const auto l = planned(k_dsv3, 64);
  EXPECT_EQ(walk_of(l, 1, 8).fc1_parts, 8u);  // 8 groups x 16 pairs = 128
  EXPECT_EQ(walk_of(l, 2, 9).fc1_parts, 1u);
  for (std::uint32_t tiles = 1; tiles <= 64; ++tiles)
    for (std::uint32_t groups = tiles; groups <= 8 * tiles; ++groups) {
      const auto walk = walk_of(l, tiles, groups);
      const auto split_counters = [&](const ladder_product& p, std::uint32_t parts) {
        return parts > 1 ? tiles * p.pairs * k_ladder_epilogue_warps : 0;
      };
      EXPECT_EQ(walk.fc1_split_counters, gemm_counters::first_tile + tiles);
      EXPECT_EQ(walk.fc2_split_counters,
                walk.fc1_split_counters + split_counters(l.fc1, walk.fc1_parts));
      EXPECT_LE(walk.fc2_split_counters + split_counters(l.fc2, walk.fc2_parts), l.counters);
      // The last tile's last pair and chunk still lies inside.
      const auto last_of = [&](const ladder_product& p, std::uint32_t parts) -> std::uint64_t {
        if (parts == 1) return 0;
        const row_tile last{.first_group = static_cast<std::int32_t>(groups) - 1, .groups = 1};
        return partial_group(p, {.pair = p.pairs - 1, .chunk = parts - 1}, last) + 1;
      };
      const std::uint64_t group_bytes_of_sums = std::uint64_t{k_group_rows} * k_unit_rows * 4;
      const std::uint64_t fc1_room =
          std::uint64_t{l.fc1.k.chunks} * l.split_groups * group_bytes_of_sums;
      EXPECT_LE(last_of(l.fc1, walk.fc1_parts) * group_bytes_of_sums, fc1_room);
      EXPECT_LE(last_of(l.fc2, walk.fc2_parts) * group_bytes_of_sums, l.partials_bytes - fc1_room);
    }
}

TEST(ladder_walk, gives_parts_of_a_unit_places_of_their_own) {
  const auto l = planned(k_dsv3, 16);
  const row_tile tiles[2] = {{.first_group = 0, .groups = 2}, {.first_group = 2, .groups = 1}};
  std::vector<int> taken(3 * std::size_t{l.fc1.pairs} * l.fc1.k.chunks);
  for (const auto& tile : tiles)
    for (std::uint32_t pair = 0; pair < l.fc1.pairs; ++pair)
      for (std::uint32_t chunk = 0; chunk < l.fc1.k.chunks; ++chunk)
        for (std::int32_t g = 0; g < tile.groups; ++g)
          ++taken.at(partial_group(l.fc1, {.pair = pair, .chunk = chunk}, tile) +
                     static_cast<std::size_t>(g));
  for (const int times : taken) EXPECT_EQ(times, 1);
}

}  // namespace
}  // namespace moetier::kernels::cuda
