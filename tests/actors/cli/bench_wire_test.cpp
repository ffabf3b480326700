// `bench wire`: its rates, and moetier's exchange between threads as it measures it.
#include "actors/cli/wire_cell.hpp"

#include <gtest/gtest.h>

#include "actors/cli/commands.hpp"
#include "actors/cli/exchange_echo.hpp"

namespace moetier::cli {
namespace {

wire_cell cell() {
  return {.way = "shm",
          .size = "1 MiB",
          .bytes_out = 1'000'000,
          .bytes_back = 500'000,
          .calls = 5,
          .round_trip = {.p50 = 300, .p99 = 400},
          .copy_gb_s = 10};
}

TEST(bench_wire, the_rate_one_way_is_both_payloads_over_the_round_trip) {
  EXPECT_DOUBLE_EQ(cell().gb_per_s(), 5);
  EXPECT_DOUBLE_EQ(cell().roofline_ratio(), 0.5);
  const auto j = wire_json(cell());
  EXPECT_DOUBLE_EQ(j["algbw"].get<double>(), 5);
  EXPECT_DOUBLE_EQ(j["roofline_ratio"].get<double>(), 0.5);
  EXPECT_DOUBLE_EQ(j["latency_us"]["p99"].get<double>(), 400);
}

TEST(bench_wire, a_way_that_is_not_here_has_a_reason_and_no_figures) {
  wire_cell absent{.way = "tcp", .size = "1 row", .bytes_out = 64, .skipped = "no tcp"};
  EXPECT_EQ(wire_json(absent)["skipped"], "no tcp");
  EXPECT_FALSE(wire_json(absent).contains("algbw"));
  EXPECT_TRUE(wire_figures(std::vector{absent}).empty());
  EXPECT_EQ(wire_table(std::vector{cell(), absent}).markdown(),
            "| way | size | bytes | p50 us | p99 us | GB/s one way | memcpy GB/s | of memcpy |\n"
            "|---|---|--:|--:|--:|--:|--:|--:|\n"
            "| shm | 1 MiB | 1000000 | 300 | 400 | 5.00 | 10.0 | 0.50 |\n"
            "| tcp | 1 row | 64 | - | - | - | - | - |\n");
}

TEST(bench_wire, every_row_comes_back_from_a_worker_that_computes_nothing) {
  const auto times = exchange_times(
      {.carrier = "in_process", .rows = 3, .row_bytes = 64, .warmup = 2, .calls = 7});
  ASSERT_TRUE(times) << times.error().text;
  EXPECT_EQ(times->size(), 7U);
  for (const std::uint64_t ns : *times) EXPECT_GT(ns, 0U);
}

TEST(bench_wire, a_row_of_no_whole_lanes_is_refused_by_the_carrier) {
  const auto odd =
      exchange_times({.carrier = "in_process", .rows = 1, .row_bytes = 20, .calls = 1});
  ASSERT_FALSE(odd);
  EXPECT_EQ(odd.error().why, reason::invalid_argument);
}

TEST(bench_wire, a_message_that_no_memory_should_hold_is_a_usage_error) {
  command_line line;
  line.wire.hidden_size = 65536;
  line.wire.rows = {1, 1025};
  const auto refused = run_bench_wire(line, {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().text,
            "setting --rows is 1025; allowed: 1 to 1024 of 262144 bytes each");
}

TEST(bench_wire, an_unmet_demand_is_exit_code_8_and_an_unknown_one_a_usage_error) {
  command_line line;
  line.wire.rows = {1};
  line.wire.mebibytes = {};
  line.wire.ways = {"in_process"};
  line.wire.calls = 3;
  const auto run = [&line] {
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    auto ended = run_bench_wire(line, {});
    testing::internal::GetCapturedStdout();
    testing::internal::GetCapturedStderr();
    return ended;
  };
  EXPECT_EQ(run().value_or(exit_code::failed), exit_code::done);
  line.wire.demands = {{"p50_us", 0}};
  EXPECT_EQ(run().value_or(exit_code::failed), exit_code::check_failed);
  line.wire.demands = {{"p50_us", 1e9}, {"algbw", 0}};
  EXPECT_EQ(run().value_or(exit_code::failed), exit_code::done);
  line.wire.demands = {{"speed", 1}};
  const auto refused = run();
  ASSERT_FALSE(refused);
  EXPECT_EQ(exit_code_of(refused.error()), exit_code::usage);
}

}  // namespace
}  // namespace moetier::cli
