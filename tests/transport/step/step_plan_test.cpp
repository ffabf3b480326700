#include "transport/step/step_plan.hpp"

#include <numeric>
#include <random>

#include <gtest/gtest.h>

namespace moetier::transport {
namespace {

using sizes = std::vector<std::uint32_t>;

sizes all_parts(std::uint32_t total, std::uint32_t parts) {
  sizes out;
  for (std::uint32_t p = 0; p < parts; ++p) out.push_back(split(total, parts, p).size);
  return out;
}

TEST(split, gives_the_first_parts_the_odd_rows) {
  EXPECT_EQ(all_parts(10, 4), (sizes{3, 3, 2, 2}));
  EXPECT_EQ(all_parts(3, 4), (sizes{1, 1, 1, 0}));
  EXPECT_EQ(all_parts(0, 3), (sizes{0, 0, 0}));
}

TEST(split, parts_follow_each_other_and_cover_the_total) {
  for (std::uint32_t total = 0; total < 40; ++total) {
    for (std::uint32_t parts = 1; parts < 12; ++parts) {
      std::uint32_t next = 0;
      for (std::uint32_t p = 0; p < parts; ++p) {
        const split_part part = split(total, parts, p);
        EXPECT_EQ(part.first, next);
        next += part.size;
      }
      EXPECT_EQ(next, total);
    }
  }
}

TEST(chunk_count, is_never_zero_and_never_one_too_many) {
  EXPECT_EQ(chunk_count(0, 8), 1u);
  EXPECT_EQ(chunk_count(1, 8), 1u);
  EXPECT_EQ(chunk_count(8, 8), 1u);
  EXPECT_EQ(chunk_count(9, 8), 2u);
  EXPECT_EQ(chunk_count(0xffffffffu, 1), 0xffffffffu);
}

TEST(step_plan, counts_the_rows_of_all_sources_in_a_lockstep_group) {
  const sizes counts{5, 3};
  EXPECT_EQ(plan_step(counts, {.rows_per_chunk_max = 8, .lockstep = true})->chunks, 2u);
}

TEST(step_plan, cuts_every_source_by_the_same_number_of_chunks) {
  const sizes counts{4096, 1, 1, 1};
  const auto plan = plan_step(counts, {.rows_per_chunk_max = 8192, .lockstep = true});
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->chunks, 2u);
  EXPECT_EQ(plan->sizes[0], (sizes{2048, 1, 1, 1}));
  EXPECT_EQ(plan->sizes[1], (sizes{2048, 0, 0, 0}));
}

TEST(step_plan, replaces_empty_entries_of_a_lockstep_group_by_min_rows_on_all) {
  const sizes counts{4096, 1, 1, 1};
  const auto plan =
      plan_step(counts, {.rows_per_chunk_max = 8192, .lockstep = true, .min_rows = 1});
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->sizes[1], (sizes{2048, 1, 1, 1}));
}

TEST(step_plan, has_one_chunk_when_nobody_has_tokens) {
  EXPECT_EQ(plan_step(sizes{0, 0, 0}, {.rows_per_chunk_max = 8, .lockstep = true})->chunks, 1u);
  EXPECT_EQ(plan_step(sizes{0}, {.rows_per_chunk_max = 8})->sizes[0], sizes{0});
}

TEST(step_plan, counts_own_rows_only_on_independent_carriers) {
  EXPECT_EQ(plan_step(sizes{16}, {.rows_per_chunk_max = 8})->chunks, 2u);
  EXPECT_EQ(plan_step(sizes{16, 900}, {.rows_per_chunk_max = 16})->chunks, 1u);
}

TEST(step_plan, pads_all_to_the_largest_when_asked) {
  const auto plan = plan_step(sizes{5, 3}, {.rows_per_chunk_max = 64, .use_dp_padding = true});
  EXPECT_EQ(plan->padded, (sizes{5, 5}));
  const auto uniform = plan_step(sizes{5, 3}, {.rows_per_chunk_max = 64, .uniform_rows = true});
  EXPECT_EQ(uniform->sizes[0], (sizes{5, 5}));
}

TEST(step_plan, is_one_hash_per_input_and_fits_its_chunks) {
  std::minstd_rand engine(7);
  const auto random = [&] { return static_cast<std::uint32_t>(engine()); };
  for (int round = 0; round < 2000; ++round) {
    sizes counts(1 + random() % 8);
    for (auto& count : counts) count = random() % 300;
    const step_facts facts{.rows_per_chunk_max = 1 + random() % 600, .lockstep = true};
    const auto a = plan_step(counts, facts);
    const auto b = plan_step(counts, facts);
    ASSERT_TRUE(a && b);
    EXPECT_EQ(a->hash, b->hash);
    sizes changed = counts;
    changed[random() % changed.size()] += 1;
    EXPECT_NE(a->hash, plan_step(changed, facts)->hash);
    for (std::size_t s = 0; s < counts.size(); ++s) {
      std::uint32_t sum = 0;
      for (const auto& chunk : a->sizes) sum += chunk[s];
      EXPECT_EQ(sum, counts[s]);
    }
  }
}

TEST(step_plan, refuses_what_no_group_can_ask) {
  EXPECT_EQ(plan_step(sizes{}, {.rows_per_chunk_max = 8}).error().text,
            "the number of counts is 0; allowed: 1 to 64");
  EXPECT_EQ(plan_step(sizes{1}, {}).error().text, "rows_per_chunk_max is 0; allowed: 1 or more");
  EXPECT_EQ(plan_step(sizes{1}, {.rows_per_chunk_max = 8, .min_rows = 2}).error().text,
            "min_rows is 2; allowed: 0 or 1");
  EXPECT_EQ(plan_step(sizes{k_plan_tokens_max + 1}, {.rows_per_chunk_max = 8}).error().text,
            "the largest count is 1048577; at most 1048576");
}

}  // namespace
}  // namespace moetier::transport
