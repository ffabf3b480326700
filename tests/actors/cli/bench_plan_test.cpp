// `bench plan` on a small scale: its figures keep what the planner promises, and the same seed
// gives the same ones.
#include "actors/cli/bench_plan.hpp"

#include <gtest/gtest.h>

#include <filesystem>

#include "actors/cli/bench_plan_loads.hpp"
#include "actors/cli/svg_plot.hpp"
#include "schemas/safetensors/tensor_writer.hpp"

namespace moetier::cli {
namespace {

const std::string k_root = MOETIER_SOURCE_DIR;

plan_bench_options options() {
  plan_bench_options o;
  o.domains = k_root + "/tests/data/eplb/expert_totals.safetensors";
  o.trace = k_root + "/deploy/demo/vectors/routing_trace.safetensors";
  o.layers = 1;
  o.windows = 3;
  o.repeat = 1;
  return o;
}

TEST(bench_plan, plans_reach_the_bound_wherever_wrap_applies_and_never_fall_behind_the_greedy) {
  const auto rows = bench_planned(options());
  ASSERT_TRUE(rows.has_value()) << rows.error().text;
  std::size_t wrapped = 0;
  std::size_t recorded = 0;
  std::size_t grouped = 0;
  for (const planned_row& r : *rows) {
    EXPECT_GE(r.ours, r.greedy - 0.05) << r.shape << " " << r.loads;
    EXPECT_GE(r.feasible, r.ours * (1 - 1e-9)) << r.shape << " " << r.loads;
    EXPECT_GE(r.feasible, 97.8) << r.shape << " " << r.loads;
    EXPECT_LE(r.feasible, 100.001) << r.shape << " " << r.loads;
    grouped += r.method == "group_wrap" ? 1 : 0;
    recorded += r.loads.starts_with("recorded") ? 1 : 0;
    if (r.method != "window_wrap") continue;
    ++wrapped;
    EXPECT_GE(r.ours_worst, 99.95) << r.shape << " " << r.loads;
  }
  EXPECT_GE(wrapped, 30U);
  EXPECT_GE(grouped, 16U);
  EXPECT_GE(recorded, 9U);
}

TEST(bench_plan, realised_balance_comes_with_few_copies) {
  const auto figures = bench_realised(options());
  ASSERT_TRUE(figures.has_value()) << figures.error().text;
  EXPECT_EQ(figures->rows.size(), 21U);  // four shapes, five drifts; the recorded ids
  for (const realised_row& r : figures->rows) {
    EXPECT_GT(r.ours_ring, r.greedy_even - 0.05) << r.shape << " " << r.trace;
    EXPECT_GT(r.greedy_copies, 20 * r.ours_copies) << r.shape << " " << r.trace;
    if (r.trace == "stationary") {
      EXPECT_LE(r.ours_copies, 0.4) << r.shape;
    }
  }
  const auto again = bench_realised(options());
  for (std::size_t i = 0; i < again->rows.size(); ++i) {
    EXPECT_EQ(again->rows[i].ours_ring, figures->rows[i].ours_ring);
    EXPECT_EQ(again->rows[i].ours_copies, figures->rows[i].ours_copies);
  }
}

TEST(bench_plan, traces_drift_as_they_are_named) {
  const auto domains = read_domains(options().domains);
  ASSERT_TRUE(domains.has_value());
  EXPECT_EQ(domains->names, (std::vector<std::string>{"intent", "law", "summary", "translation"}));
  EXPECT_EQ(wide_layers(*domains, 256), 6U);
  const auto wide = wide_layer(*domains, 256, 5);
  double sum = 0;
  for (const double p : wide[2]) sum += p;
  EXPECT_NEAR(sum, 1, 1e-9);
  drifting_layer trace(wide, drift_kind::mild, 1);
  const trace_window w = trace.next();
  ASSERT_EQ(w.size(), 12U);
  EXPECT_EQ(w[0].ids.size(), 32U);
  std::uint64_t selections = 0;
  for (const std::uint64_t n : w[0].counts) selections += n;
  EXPECT_EQ(selections, 32U * 1024U);
}

TEST(bench_plan, primary_replicas_pay_for_small_batches_alone) {
  const auto rows = bench_small_batch(options());
  ASSERT_TRUE(rows.has_value());
  EXPECT_LT((*rows)[0].primary_us, 0.95 * (*rows)[0].balanced_us);  // 64 tokens
  EXPECT_GT((*rows)[2].primary_us, (*rows)[2].balanced_us);         // 1,024
}

struct recorded {
  std::string path = testing::TempDir() + "bench_plan_test.safetensors";

  void write(const std::vector<std::pair<std::string, std::vector<std::uint64_t>>>& shapes,
             const std::vector<std::int64_t>& numbers) const {
    std::vector<tensor_to_write> tensors;
    for (const auto& [name, shape] : shapes)
      tensors.push_back({name, dtype::i64, shape, std::as_bytes(std::span(numbers))});
    const auto written = write_tensors(path, tensors);
    ASSERT_TRUE(written.has_value()) << written.error().text;
  }
  template <class Rows>
  std::string refusal(const expected<Rows>& rows) const {
    return rows ? "read" : rows.error().text;
  }
  ~recorded() { std::filesystem::remove(path); }
};

TEST(bench_plan, domains_that_fit_no_shape_are_refused) {
  recorded f;
  const auto both = [&](const std::string& text) {
    plan_bench_options o = options();
    o.trace.clear();
    o.domains = f.path;
    EXPECT_EQ(f.refusal(bench_planned(o)), f.path + " is malformed: " + text);
    EXPECT_EQ(f.refusal(bench_realised(o)), f.path + " is malformed: " + text);
  };
  f.write({{"a", {1, 4}}}, {1, 2, 3, 4});  // 64 of its layers would make one of 256 experts
  both("its 1 layers of 4 experts fit no shape that is measured");
  f.write({{"a", {2, 7}}}, std::vector<std::int64_t>(14, 1));
  both("its 2 layers of 7 experts fit no shape that is measured");
  f.write({{"a", {1, 4}}}, {1, -2, 3, 4});
  both("tensor a layer 0 expert 1: -2 is no count");
  f.write({{"a", {0, 4}}, {"b", {0, 4}}}, {});
  both("tensor a is not [layer, expert] as the others");
}

TEST(bench_plan, traces_without_windows_are_refused) {
  recorded f;
  plan_bench_options o = options();
  o.domains.clear();
  o.trace = f.path;
  for (const std::vector<std::uint64_t>& shape :
       {std::vector<std::uint64_t>{2, 0}, {0, 2}, {0, std::uint64_t{1} << 59}}) {
    f.write({{"a.layer0", shape}}, {});
    EXPECT_EQ(f.refusal(bench_realised(o)),
              f.path + " is malformed: it is too short for two windows");
  }
  f.write({}, {});
  EXPECT_EQ(f.refusal(bench_realised(o)),
            f.path + " is malformed: it is too short for two windows");
  o.trace = options().trace;
  o.trace_experts = 4096;
  EXPECT_EQ(f.refusal(bench_realised(o)),
            "placement: worker 0 has 1026 slots per layer; 1 to 1024 are allowed");
}

TEST(svg_plot, draws_every_line_and_cell) {
  const std::string lines = svg_lines("a < b", "x", "y", {{"one", {1, 2, 3}}, {"two", {2, 2, 2}}});
  EXPECT_NE(lines.find("a &lt; b"), std::string::npos);
  std::size_t polylines = 0;
  for (std::size_t at = lines.find("<polyline"); at != std::string::npos;
       at = lines.find("<polyline", at + 1))
    ++polylines;
  EXPECT_EQ(polylines, 2U);
  const std::string heat = svg_heat("t", "x", "y", {{"p", {{0, 1}, {2, 3}}}});
  EXPECT_NE(heat.find("#ffffff"), std::string::npos);
  EXPECT_NE(heat.find("#92c5de"), std::string::npos);
  EXPECT_NE(heat.find("#b2182b"), std::string::npos);
  EXPECT_TRUE(heat.ends_with("</svg>\n"));
}

}  // namespace
}  // namespace moetier::cli
