#include "actors/cli/call_split.hpp"

#include <gtest/gtest.h>

namespace moetier::cli {
namespace {

// A call of 100 us: route 5, pack 3, under way 80 of which its worker held 60, sum 4.
call_sample sample(duration_ns total = 100'000) {
  return {.total = total,
          .parts = {.route = 5'000,
                    .pack = 3'000,
                    .wait = 82'000,
                    .sum = 4'000,
                    .total = total,
                    .air = 80'000,
                    .held = 60'000}};
}

double sum_of(const call_split& s) {
  return s.route + s.pack + s.wire + s.queue + s.group + s.compute + s.give_back + s.held +
         s.combine + s.rest;
}

TEST(call_split, parts_add_up_to_the_whole) {
  const std::vector<call_sample> calls{sample(), sample(140'000), sample(96'500)};
  const stage_sums workers{.receive = 3, .wait = 5, .group = 7, .compute = 11, .give_back = 13};
  for (const stage_sums* known : {static_cast<const stage_sums*>(nullptr), &workers}) {
    const call_split s = split_of(calls, known);
    EXPECT_NEAR(s.total, (100.0 + 140.0 + 96.5) / 3, 1e-9);
    EXPECT_NEAR(sum_of(s), s.total, 1e-9);
  }
}

TEST(call_split, without_the_workers_stages_what_they_held_is_one_part) {
  const call_split s = split_of(std::vector{sample()}, nullptr);
  EXPECT_DOUBLE_EQ(s.route, 5);
  EXPECT_DOUBLE_EQ(s.pack, 3);
  EXPECT_DOUBLE_EQ(s.wire, 20);
  EXPECT_DOUBLE_EQ(s.held, 60);
  EXPECT_DOUBLE_EQ(s.combine, 4);
  EXPECT_DOUBLE_EQ(s.rest, 8);
  EXPECT_EQ(s.queue, 0);
  EXPECT_EQ(s.compute, 0);
}

TEST(call_split, what_was_held_is_divided_as_the_stages_were) {
  // Of two calls that the workers counted, whatever their scale: 1/10 landing, 2/10 waiting, ...
  const stage_sums workers{.receive = 10, .wait = 20, .group = 5, .compute = 60, .give_back = 5};
  const call_split s = split_of(std::vector{sample()}, &workers);
  EXPECT_DOUBLE_EQ(s.wire, 20 + 6);  // landing is a matter of the wire
  EXPECT_DOUBLE_EQ(s.queue, 12);
  EXPECT_DOUBLE_EQ(s.group, 3);
  EXPECT_DOUBLE_EQ(s.compute, 36);
  EXPECT_DOUBLE_EQ(s.give_back, 3);
  EXPECT_EQ(s.held, 0);
  EXPECT_DOUBLE_EQ(s.rest, 8);
}

TEST(call_split, workers_that_counted_nothing_divide_nothing) {
  const stage_sums none;
  const call_split s = split_of(std::vector{sample()}, &none);
  EXPECT_DOUBLE_EQ(s.held, 60);
  EXPECT_NEAR(sum_of(s), 100, 1e-9);
}

TEST(call_split, a_return_that_was_in_before_it_was_looked_for_is_all_held) {
  call_sample early = sample();
  early.parts.held = 90'000;  // longer than it was under way, by another process's clock
  const call_split s = split_of(std::vector{early}, nullptr);
  EXPECT_DOUBLE_EQ(s.wire, 0);
  EXPECT_DOUBLE_EQ(s.held, 80);
}

TEST(call_split, the_batch_of_typical_calls_is_shown_whole_and_outliers_spoil_their_own) {
  const stage_sums w{.compute = 1};
  // The median call took 102 us; one call in each of the first three batches was pushed aside.
  const std::vector<call_batch> batches{{{sample(101'000), sample(9'000'000)}, w},
                                        {{sample(100'000), sample(9'000'000)}, w},
                                        {{sample(102'000), sample(9'000'000)}, w},
                                        {{sample(101'000), sample(104'000)}, w},
                                        {{sample(99'000), sample(99'000)}, w}};
  const call_split s = typical_split(batches, true);
  EXPECT_DOUBLE_EQ(s.total, 102.5);
  EXPECT_DOUBLE_EQ(s.compute, 60);
  EXPECT_DOUBLE_EQ(s.rest, 10.5);
  EXPECT_DOUBLE_EQ(typical_split(batches, false).held, 60);
}

}  // namespace
}  // namespace moetier::cli
