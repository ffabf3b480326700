// Every launch plan over random shapes and capacities up to the limits: nothing overlaps, counters
// and shared memory suffice, grids are within the device, and what the resolver lets run has a
// plan.
#include <algorithm>
#include <array>
#include <cstring>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/candidates/backend_candidate.hpp"
#include "kernels/cuda/combine_launch.hpp"
#include "kernels/cuda/gather_rows_launch.hpp"
#include "kernels/cuda/ladder_walk.hpp"
#include "kernels/cuda/row_tiles_launch.hpp"
#include "kernels/cuda/sm90_page.hpp"
#include "kernels/cuda/sm90_workspace.hpp"
#include "kernels/cuda/straight_launch.hpp"
#include "kernels/cuda/straight_order.hpp"

namespace moetier::kernels::cuda {
namespace {

constexpr std::uint32_t k_size_max = 16384;
constexpr std::uint32_t k_rows_max = 131072;

// Small values as often as large ones.
std::uint32_t any_up_to(std::uint32_t most, std::mt19937& random) {
  const std::uint32_t cap = std::min(most, std::uint32_t{1} << random() % 21);
  return 1 + static_cast<std::uint32_t>(random() % cap);
}

gemm_shape any_shape(std::mt19937& random) {
  gemm_shape s{.format = random() % 2 == 0 ? gemm_format::fp8 : gemm_format::bf16};
  const std::uint32_t columns = columns_of_block(s.format);
  s.hidden_size = columns * any_up_to(k_size_max / columns, random);
  s.intermediate_size = columns * any_up_to(k_size_max / columns, random);
  s.bias = s.format == gemm_format::bf16 && random() % 2 == 0;
  return s;
}

// One the grouping takes, with the bounds themselves now and then.
layer_capacity any_capacity(std::mt19937& random) {
  layer_capacity c;
  c.rows_cap = random() % 8 == 0 ? k_rows_max : any_up_to(k_rows_max, random);
  c.slots = random() % 8 == 0 ? k_row_tiles_slots_max : any_up_to(k_row_tiles_slots_max, random);
  c.k_in = any_up_to(std::min(32u, k_row_tiles_entries_max / c.rows_cap), random);
  return c;
}

device_size any_device(std::mt19937& random) {
  return {.multiprocessors =
              random() % 2 == 0 ? 132 : 2 + static_cast<std::uint32_t>(random() % 160)};
}

std::string told(const gemm_shape& s, const layer_capacity& c, const device_size& d) {
  return (s.format == gemm_format::fp8 ? "fp8 " : "bf16 ") + std::to_string(s.hidden_size) + " x " +
         std::to_string(s.intermediate_size) + ", " + std::to_string(c.rows_cap) + " rows of " +
         std::to_string(c.k_in) + ", " + std::to_string(c.slots) + " slots, " +
         std::to_string(d.multiprocessors) + " multiprocessors";
}

template <class Check>
void for_random(std::uint32_t rounds, std::uint32_t seed, Check check) {
  std::mt19937 random(seed);
  for (std::uint32_t i = 0; i < rounds; ++i) {
    const gemm_shape shape = any_shape(random);
    const layer_capacity capacity = any_capacity(random);
    const device_size device = any_device(random);
    SCOPED_TRACE(told(shape, capacity, device));
    check(shape, capacity, device, random);
    if (testing::Test::HasFailure()) return;
  }
}

std::uint64_t entries_of(const layer_capacity& c) { return std::uint64_t{c.rows_cap} * c.k_in; }

TEST(launch_limits, parts_of_a_page_lie_behind_each_other) {
  for_random(4000, 1, [](const gemm_shape& s, const layer_capacity&, const device_size&, auto&) {
    const page_layout l = page_layout_of(s);
    const std::uint64_t h = s.hidden_size;
    const std::uint64_t i = s.intermediate_size;
    const std::uint64_t bits = s.format == gemm_format::fp8 ? 8 : 16;
    EXPECT_EQ(l.fc1, 0u);
    EXPECT_GE(l.fc2 - l.fc1, 2 * i * h * bits / 8);
    EXPECT_GE(l.scales1 - l.fc2, h * i * bits / 8);
    EXPECT_GE(l.scales2 - l.scales1, bits == 8 ? 2 * (i / 128) * (h / 128) * 4 : 0);
    EXPECT_GE(l.bias1 - l.scales2, bits == 8 ? (h / 128) * (i / 128) * 4 : 0);
    EXPECT_GE(l.bias2 - l.bias1, s.bias ? 2 * i * 4 : 0);
    EXPECT_GE(l.constants - l.bias2, s.bias ? h * 4 : 0);
    EXPECT_GE(l.bytes, l.constants + 16);
    for (const std::uint64_t at : {l.fc2, l.scales1, l.scales2, l.bias1, l.bias2, l.constants})
      EXPECT_EQ(at % 64, 0u);
    EXPECT_EQ(l.bytes % k_page_alignment_bytes, 0u);
    // The last element of each matrix lies inside.
    const auto h32 = s.hidden_size;
    const auto i32 = s.intermediate_size;
    EXPECT_LT(weight_offset(s.format, l.fc1_blocks, up_page_row(i32 - 1), h32 - 1), l.fc2 - l.fc1);
    EXPECT_LT(weight_offset(s.format, l.fc2_blocks, h32 - 1, i32 - 1), l.scales1 - l.fc2);
  });
}

TEST(launch_limits, a_workspace_holds_what_every_kernel_of_the_call_uses) {
  for_random(
      3000, 2, [](const gemm_shape& s, const layer_capacity& c, const device_size& d, auto&) {
        const auto w = plan_workspace(s, c, d);
        ASSERT_TRUE(w);
        const std::uint64_t entries = entries_of(c);
        const std::uint64_t tiles = tiles_max(entries, c.slots, k_tile_rows_min);
        const std::uint64_t groups = groups_max(entries, c.slots);
        const page_layout l = page_layout_of(s);
        struct part {
          std::uint64_t at, needed;
        };
        const std::array<part, 13> parts{{
            {0, w->counters_bytes},
            {w->header, sizeof(tile_header)},
            {w->tiles, tiles * sizeof(row_tile)},
            {w->segment_tile, (std::min<std::uint64_t>(entries, c.slots) + 1) * 4},
            {w->tile_segment, tiles * 4},
            {w->entry_of, groups * k_group_rows * 4},
            {w->place_of, c.k_in > 1 ? entries * 4 : 0},
            {w->scratch, row_tiles_scratch_bytes(entries, c.slots)},
            {w->x, groups * l.fc1_blocks * group_bytes(s.format)},
            {w->mid, groups * l.fc2_blocks * group_bytes(s.format)},
            {w->y, c.k_in > 1 ? entries * s.hidden_size * 4 : 0},
            {w->partials, 0},
            {w->bytes, 0},
        }};
        for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
          EXPECT_EQ(parts[i].at % 256, 0u) << i;
          EXPECT_LE(parts[i].at + parts[i].needed, parts[i + 1].at) << i;
        }
        EXPECT_EQ(w->counters_bytes, counters_bytes_of(s, d));
        for (std::uint32_t rows = 8; rows <= k_ladder_tile_rows_max; rows *= 2) {
          const auto ladder = plan_ladder(s, rows, tiles_max(entries, c.slots, rows), d);
          ASSERT_TRUE(ladder);
          EXPECT_LE(std::size_t{ladder->counters} * 4, w->counters_bytes);
          EXPECT_LE(ladder->partials_bytes, w->bytes - w->partials);
        }
        // The last row of the highest group of x and mid lies inside.
        if (groups > 0) {
          const auto last = static_cast<std::uint32_t>(groups - 1);
          EXPECT_LT(activation_offset(s.format, l.fc1_blocks, last, 1, 7, s.hidden_size - 1),
                    w->mid - w->x);
          EXPECT_LT(activation_offset(s.format, l.fc2_blocks, last, 1, 7, s.intermediate_size - 1),
                    w->y - w->mid);
        }
      });
}

TEST(launch_limits, a_workspace_never_shrinks_with_its_capacity) {
  for_random(1500, 3,
             [](const gemm_shape& s, const layer_capacity& c, const device_size& d, auto&) {
               const auto bytes = [&](const layer_capacity& of) -> std::size_t {
                 const auto w = plan_workspace(s, of, d);
                 return w ? w->bytes : ~std::size_t{0};  // nothing beyond the limits
               };
               const std::size_t here = bytes(c);
               EXPECT_GE(bytes({c.rows_cap + 1, c.k_in, c.slots}), here);
               EXPECT_GE(bytes({c.rows_cap, c.k_in + 1, c.slots}), here);
               EXPECT_GE(bytes({c.rows_cap, c.k_in, c.slots + 1}), here);
             });
}

TEST(launch_limits, gemm_plans_stay_within_the_device) {
  for_random(
      3000, 4,
      [](const gemm_shape& s, const layer_capacity& c, const device_size& d, std::mt19937& random) {
        const std::uint64_t entries = entries_of(c);
        const std::uint32_t tiles = tiles_max(entries, c.slots, k_straight_tile_rows);
        const auto straight = plan_straight(s, tiles, d);
        ASSERT_TRUE(straight);
        EXPECT_GE(straight->blocks, k_straight_cluster);
        EXPECT_LE(straight->blocks, d.multiprocessors);
        EXPECT_EQ(straight->blocks % k_straight_cluster, 0u);
        EXPECT_LE(straight->shared_bytes, d.shared_bytes_max);
        EXPECT_GE(straight->counters, gemm_counters::first_tile + tiles);
        // Numbers of units are 32 bits wide.
        const page_layout l = page_layout_of(s);
        const straight::unit_order one{.tiles = 1,
                                       .fc1_pairs = straight::strip_pairs(l.fc1_strips),
                                       .fc2_pairs = straight::strip_pairs(l.fc2_strips)};
        EXPECT_LT(std::uint64_t{tiles} * one.numbers(), std::uint64_t{1} << 31);

        const std::uint32_t rows = 8u << random() % 4;
        const std::uint32_t most = tiles_max(entries, c.slots, rows);
        const auto ladder = plan_ladder(s, rows, most, d);
        ASSERT_TRUE(ladder);
        EXPECT_EQ(ladder->blocks, d.multiprocessors);
        EXPECT_LE(ladder->shared_bytes, d.shared_bytes_max);
        EXPECT_GE(ladder->stages, k_ladder_stages_min);
        // Walks over the fewest and the most tiles: counters and partial sums suffice.
        for (const std::uint32_t n : {1u, 1 + static_cast<std::uint32_t>(random() % most), most}) {
          const std::uint64_t whole = std::uint64_t{n} * (ladder->fc1.pairs + ladder->fc2.pairs);
          EXPECT_LT(whole, std::uint64_t{1} << 31);
          const std::uint32_t groups = n;
          const ladder_walk walk = walk_of(*ladder, n, groups);
          EXPECT_GE(walk.units, 1u);
          const auto counters = [&](const ladder_product& p, std::uint32_t parts) -> std::uint64_t {
            return parts > 1 ? std::uint64_t{n} * p.pairs * k_ladder_epilogue_warps : 0;
          };
          EXPECT_LE(walk.fc2_split_counters + counters(ladder->fc2, walk.fc2_parts),
                    ladder->counters);
          const auto sums = [&](const ladder_product& p, std::uint32_t parts) -> std::uint64_t {
            return parts > 1 ? std::uint64_t{groups} * p.pairs * p.k.chunks : 0;
          };
          EXPECT_LE((sums(ladder->fc1, walk.fc1_parts) + sums(ladder->fc2, walk.fc2_parts)) *
                        k_group_rows * k_unit_rows * 4,
                    ladder->partials_bytes);
        }
      });
}

TEST(launch_limits, row_tiles_fit_one_blocks_shared_memory_and_scratch) {
  for_random(4000, 5, [](const gemm_shape&, const layer_capacity& c, const device_size& d, auto&) {
    const std::uint64_t entries = entries_of(c);
    const row_tiles_plan p = plan_row_tiles(entries, c.slots);
    EXPECT_GE(p.blocks, 1u);
    EXPECT_LE(p.blocks, k_row_tiles_blocks_max);
    EXPECT_GE(p.threads, c.slots);
    EXPECT_LE(p.threads, k_row_tiles_threads_max);
    EXPECT_LE(p.warps * 32, p.threads);
    EXPECT_LE(p.rounds, k_row_tiles_rounds_max);
    EXPECT_LE(p.shared_bytes, d.shared_bytes_max);
    EXPECT_GE(std::uint64_t{p.blocks} * p.warps * 32 * p.rounds, entries);
    // Ranks within a block are 16 bits wide.
    EXPECT_LT(p.warps * 32 * p.rounds, 65536u);
    if (p.launches == 2) {
      EXPECT_GE(row_tiles_scratch_bytes(entries, c.slots),
                std::size_t{p.blocks} * row_tiles_pitch(c.slots) * 2);
    }
  });
}

TEST(launch_limits, gathers_and_sums_have_grids_that_reach_all_rows) {
  for_random(
      4000, 6,
      [](const gemm_shape& s, const layer_capacity& c, const device_size& d, std::mt19937& random) {
        std::int32_t place = 0;
        gather_rows_args args{.rows_cap = c.rows_cap,
                              .k_in = c.k_in,
                              .hidden_size = s.hidden_size,
                              .slots = c.slots,
                              .tile_rows = 8u << random() % 5};
        if (random() % 2 == 0) args.tiles.place_of = &place;
        const gather_rows_plan p = plan_gather_rows(args, s.format, d);
        EXPECT_GE(p.grid, 1u);
        EXPECT_LE(p.grid, d.multiprocessors * k_gather_blocks_per_multiprocessor);
        EXPECT_EQ(p.blocks, s.hidden_size / columns_of_block(s.format));
        EXPECT_GE(p.chunks * gather_chunk_blocks(p.way, s.format), p.blocks);
        if (p.way != gather_way::by_row) {
          EXPECT_GE(p.part_groups * p.parts, args.tile_rows / 8);
          EXPECT_LT(std::uint64_t{p.tiles} * p.parts * p.chunks, std::uint64_t{1} << 31);
        } else {
          EXPECT_LT(ceil_div(args.rows_cap, k_gather_pass_rows) * p.chunks, std::uint64_t{1} << 31);
        }
        const combine_args sum{
            .rows_cap = c.rows_cap, .k_in = c.k_in, .hidden_size = s.hidden_size};
        EXPECT_LT(sum.rows_cap * combine_strips(sum.hidden_size), k_combine_units_end);
        const combine_plan q = plan_combine(sum, d);
        EXPECT_GE(q.grid, 1u);
        EXPECT_LE(q.grid, d.multiprocessors * k_combine_blocks_per_multiprocessor);
        EXPECT_GE(q.strips * k_combine_columns, s.hidden_size);
      });
}

// What can_implement() bounds by these constants is what the plans take.
TEST(launch_limits, of_the_candidates_are_those_of_the_plans) {
  for (const backend_candidate& c : backend_candidates()) {
    if (c.architecture != "sm_90") continue;
    const bool fp8 = c.short_name == "sm90_fp8";
    gemm_shape s{.format = fp8 ? gemm_format::fp8 : gemm_format::bf16};
    s.hidden_size = s.intermediate_size = c.size_max != 0 ? c.size_max : 65536;
    const auto plan = [&](std::uint32_t k) {
      return plan_workspace(s, {.rows_cap = 4096, .k_in = k, .slots = c.slots_max}, {});
    };
    EXPECT_TRUE(plan(c.top_k_max)) << c.short_name;
    EXPECT_EQ(c.top_k_max, k_combine_positions_max);
    if (c.size_max == 0) continue;
    s.hidden_size += columns_of_block(s.format);
    EXPECT_FALSE(plan(1)) << c.short_name;
  }
}

// Pages of random small shapes: every code where weight_offset() says, against bytes of its own.
TEST(launch_limits, pages_of_random_shapes_keep_every_code) {
  std::mt19937 random(8);
  for (int round = 0; round < 60; ++round) {
    const bool fp8 = random() % 2 == 0;
    const std::uint32_t columns = fp8 ? 128 : 64;
    const expert_shape shape{
        .hidden_size = columns * (1 + static_cast<std::uint32_t>(random() % 7)),
        .intermediate_size = columns * (1 + static_cast<std::uint32_t>(random() % 7)),
        .format = {.quant = fp8 ? quant_kind::fp8_block : quant_kind::none, .stored = dtype::bf16},
        .activation = activation_kind::swiglu};
    SCOPED_TRACE(testing::Message() << (fp8 ? "fp8 " : "bf16 ") << shape.hidden_size << " x "
                                    << shape.intermediate_size);
    const std::uint32_t h = shape.hidden_size;
    const std::uint32_t n = shape.intermediate_size;
    const std::size_t width = fp8 ? 1 : 2;
    const auto bytes_of = [&](std::uint32_t out, std::uint32_t in) {
      std::vector<std::byte> b(matrix_form_of(shape.format, out, in).bytes);
      for (std::byte& v : b) v = static_cast<std::byte>(random());
      return b;
    };
    const auto gate = bytes_of(n, h);
    const auto up = bytes_of(n, h);
    const auto down = bytes_of(h, n);
    const sm90_page page(shape);
    std::vector<std::byte> packed(page.bytes());
    page.pack({.gate = gate, .up = up, .down = down}, packed);
    const page_layout& l = page.layout();
    const auto wrong = [&](const std::vector<std::byte>& from, std::uint64_t base,
                           std::uint32_t rows, std::uint32_t width_k, std::uint32_t blocks,
                           std::uint32_t (*page_row)(std::uint32_t)) {
      std::size_t count = 0;
      for (std::uint32_t r = 0; r < rows; ++r)
        for (std::uint32_t k = 0; k < width_k; ++k)
          count += std::memcmp(&packed[base + weight_offset(gemm_shape_of(shape).format, blocks,
                                                            page_row(r), k)],
                               &from[(std::size_t{r} * width_k + k) * width], width) != 0;
      return count;
    };
    EXPECT_EQ(wrong(gate, l.fc1, n, h, l.fc1_blocks, [](auto i) { return gate_page_row(i); }), 0u);
    EXPECT_EQ(wrong(up, l.fc1, n, h, l.fc1_blocks, [](auto i) { return up_page_row(i); }), 0u);
    EXPECT_EQ(wrong(down, l.fc2, h, n, l.fc2_blocks, [](auto i) { return i; }), 0u);
  }
}

}  // namespace
}  // namespace moetier::kernels::cuda
