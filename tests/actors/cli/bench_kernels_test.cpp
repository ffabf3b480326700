// `bench kernels`: its forms agree in the run that measures them, and an unknown part is refused.
#include "actors/cli/bench_kernels.hpp"

#include <gtest/gtest.h>

#include <set>

#include "actors/cli/commands.hpp"
#include "schemas/model/routing_rule.hpp"

namespace moetier::cli {
namespace {

TEST(bench_kernels, routing_covers_every_method_that_scores_and_its_forms_agree) {
  const auto figures = bench_routing({.seed = 3, .repeat = 1});
  ASSERT_TRUE(figures);
  std::set<std::string> seen;
  for (const kernel_figures& f : *figures) {
    EXPECT_TRUE(f.agrees) << f.kernel << " " << f.shape;
    EXPECT_GE(f.forms.size(), 2U);
    for (const auto& [form, ns] : f.forms) EXPECT_GT(ns, 0) << form;
    seen.insert(f.kernel);
  }
  for (std::uint8_t m = 0; m < k_routing_methods; ++m) {
    const auto method = static_cast<routing_method>(m);
    const bool scores = method != routing_method::unspecified &&
                        method != routing_method::static_table &&
                        method != routing_method::round_robin;
    EXPECT_EQ(seen.contains(std::string(routing_method_name(method))), scores) << int{m};
  }
}

TEST(bench_kernels, the_ratio_is_of_the_first_form_to_the_last) {
  kernel_figures f;
  EXPECT_EQ(f.ratio(), 0);
  f.forms = {{"plain", 12.0}, {"scalar", 6.0}, {"avx2", 3.0}};
  EXPECT_EQ(f.ratio(), 4.0);
}

TEST(bench_kernels, an_unknown_part_is_refused_by_name) {
  command_line line;
  line.kernels.part = "none";
  const auto done = run_bench_kernels(line);
  ASSERT_FALSE(done);
  EXPECT_TRUE(done.error().text.starts_with("setting --part is none; allowed: routing"))
      << done.error().text;
}

TEST(bench_kernels, the_device_part_refuses_a_choice_without_rows) {
  const auto done = bench_device({.shape = "qwen4"});
  ASSERT_FALSE(done);
  EXPECT_TRUE(done.error().text.find("dsv3_ep8, qwen3, mixtral, gpt_oss") != std::string::npos)
      << done.error().text;
  EXPECT_FALSE(bench_device({.shape = "mixtral", .format = "fp8_block"}));
  EXPECT_FALSE(bench_device({.rows = {3}}));
}

TEST(bench_kernels, the_device_part_gives_rows_or_says_why_not) {
  const auto report = bench_device({.repeat = 1, .shape = "qwen3", .format = "bf16", .rows = {1}});
  ASSERT_TRUE(report);
  EXPECT_EQ(report->rows.empty(), !report->skipped.empty());
  EXPECT_EQ(report->skipped.empty() ? 1U : 0U, report->rows.size());
}

}  // namespace
}  // namespace moetier::cli
