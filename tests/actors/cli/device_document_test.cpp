// What the device bench shows of a row: all fields of a good one, and no figure of a wrong one.
#include "actors/cli/device_document.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace moetier::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const device_row& row_of(std::string_view shape, std::uint32_t tokens) {
  for (const device_row& r : device_rows())
    if (r.shape->name == shape && r.tokens == tokens) return r;
  throw std::out_of_range(std::string(shape));
}

device_result good(const device_row& row) {
  return {.row = row,
          .backend = "moetier.cuda.sm90_fp8.fp8_block",
          .active = 32,
          .padded = 256,
          .figures = kernels::cuda::bench::layer_figures{
              .layer = {.median = 316, .min = 315, .max = 320, .n = 25},
              .probe = {.median = 313, .min = 312, .max = 314, .n = 25},
              .eager_us = 330,
              .sort_us = 2.5,
              .sm_mhz = 1755,
              .stages = {.each = {{"ladder_kernel", 300}, {"combine_kernel", 9}}, .note = {}},
              .oracle = {.pass = true, .norm = 2e-3, .worst = 0.02, .norm_max = 1e-2, .rows = 48},
              .launch = "ladder: 132 blocks"}};
}

device_result wrong(const device_row& row) {
  device_result r = good(row);
  r.figures->oracle = {.pass = false, .norm = 0.3, .worst = 2, .norm_max = 1e-2, .rows = 48};
  return r;
}

const device_run k_run{
    .facts = {.name = "NVIDIA H200", .driver = "580.159.04"},
    .ceilings = {.read_tb_s = 4.5, .copy_tb_s = 4.3, .bf16_tf = 790, .node_gap_us = 1.2},
    .commit = "abc"};

TEST(device_document, a_row_has_every_field) {
  const auto json = device_json(good(row_of("dsv3_ep8", 256)), k_run);
  for (const char* field :
       {"shape",         "format",   "routing",  "T",        "R",        "active",
        "padded_rows",   "backend",  "variant",  "floor_us", "t_us",     "eager_us",
        "launch_config", "sort_us",  "probe_us", "of_floor", "of_probe", "of_run_floor",
        "target",        "ceilings", "oracle",   "device",   "driver",   "clocks",
        "commit",        "stages",   "tf"})
    EXPECT_TRUE(json.contains(field)) << field;
  EXPECT_EQ(json["variant"], "ladder");
  EXPECT_EQ(json["t_us"]["n"], 25);
  EXPECT_EQ(json["combine_us"], 9);
  EXPECT_EQ(json["target"]["of_probe"], 1.015);
  EXPECT_EQ(json["target"]["met"], true);
  EXPECT_NEAR(json["of_probe"], 316.0 / 313, 1e-12);
  EXPECT_NEAR(json["of_floor"], 0.995, 1e-3);
}

TEST(device_document, a_wrong_row_shows_no_figure) {
  const device_result r = wrong(row_of("dsv3_ep8", 256));
  const auto json = device_json(r, k_run);
  for (const char* field : {"t_us", "eager_us", "sort_us", "of_floor", "tf"})
    EXPECT_FALSE(json.contains(field)) << field;
  EXPECT_EQ(json["oracle"]["pass"], false);
  EXPECT_THAT(device_line(r), HasSubstr("WRONG"));
  EXPECT_THAT(device_line(r), Not(HasSubstr("316")));
  EXPECT_THAT(markdown_line(r), Not(HasSubstr("316")));
}

TEST(device_document, a_row_that_did_not_run_says_why) {
  const device_result r{.row = row_of("gpt_oss", 64), .backend = "b", .why = "no such layer"};
  EXPECT_EQ(device_json(r, k_run)["why"], "no such layer");
  EXPECT_THAT(device_line(r), HasSubstr("no such layer"));
  EXPECT_EQ(target_us(r), 1340);
  EXPECT_EQ(run_floor_us(r, k_run), 0);
}

TEST(device_document, targets_are_times_or_parts_of_the_probe) {
  EXPECT_NEAR(target_us(good(row_of("dsv3_ep8", 256))), 313 * 1.015, 1e-9);
  EXPECT_EQ(target_us(good(row_of("dsv3_ep8", 8))), 80);
  EXPECT_THAT(device_line(good(row_of("dsv3_ep8", 256))), HasSubstr(" yes "));
  EXPECT_THAT(device_line(good(row_of("dsv3_ep8", 8))), HasSubstr(" NO "));
  EXPECT_THAT(markdown_line(good(row_of("dsv3_ep8", 8))), HasSubstr("| 80 (missed) |"));
}

TEST(device_document, the_run_floor_is_the_slower_of_reading_and_multiplying) {
  EXPECT_EQ(run_floor_us(good(row_of("dsv3_ep8", 256)), k_run), 313);
  device_result big = good(row_of("mixtral", 4096));
  EXPECT_NEAR(run_floor_us(big, k_run), 3653, 1);
}

TEST(device_document, heads_and_lines_have_the_same_columns) {
  EXPECT_EQ(device_head().size(), device_line(good(row_of("dsv3_ep8", 256))).size());
  const auto bars = [](const std::string& text) {
    return std::count(text.begin(), text.end(), '|');
  };
  const std::string head = markdown_head();
  EXPECT_EQ(bars(head.substr(0, head.find('\n'))), bars(markdown_line(good(row_of("qwen3", 8)))));
}

}  // namespace
}  // namespace moetier::cli
