// `bench kernels`, its cpu part: which sizes and rows it takes, that wrong results show no figure,
// and that a peer stands beside it only where its own results are right.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "actors/cli/bench_kernels.hpp"
#include "actors/cli/commands.hpp"
#include "actors/cli/cpu_measure.hpp"
#include "kernels/backend.hpp"

namespace moetier::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr std::size_t k_ring_bytes = 1 << 16;  // nothing here is about time

bool has_avx2() {
  const kernels::cpu_features features = kernels::detect_cpu_features();
  return features.avx2 && features.fma;
}

// A peer whose matrix is its packed form; it adds `error` to each result.
template <int Error>
const moetier_gemm_peer& scripted_peer() {
  struct product {
    std::uint32_t rows, outputs, depth;
  };
  static const moetier_gemm_peer peer{
      .version = k_gemm_peer_version,
      .name = [] { return "scripted"; },
      .forms = [] { return 2u; },
      .form_name = [](std::uint32_t form) { return form == 0 ? "first" : "second"; },
      .open = [](std::uint32_t form, std::uint32_t rows, std::uint32_t outputs,
                 std::uint32_t depth) -> void* {
        return form == 0 ? nullptr
                         : std::make_unique<product>(product{rows, outputs, depth}).release();
      },
      .packed_bytes =
          [](void* p) {
            const auto* q = static_cast<product*>(p);
            return std::size_t{q->outputs} * q->depth * sizeof(float);
          },
      .pack =
          [](void* p, const float* matrix, void* packed) {
            const auto* q = static_cast<product*>(p);
            std::copy_n(matrix, std::size_t{q->outputs} * q->depth, static_cast<float*>(packed));
          },
      .run =
          [](void* p, const void* packed, const float* in, float* out) {
            const auto* q = static_cast<product*>(p);
            const auto* w = static_cast<const float*>(packed);
            for (std::size_t r = 0; r < q->rows; ++r) {
              for (std::size_t n = 0; n < q->outputs; ++n) {
                double sum = Error;
                for (std::size_t k = 0; k < q->depth; ++k)
                  sum += double{in[r * q->depth + k]} * double{w[n * q->depth + k]};
                out[r * q->outputs + n] = static_cast<float>(sum);
              }
            }
          },
      .close = [](void* p) { const std::unique_ptr<product> gone(static_cast<product*>(p)); }};
  return peer;
}

std::string refused(const kernel_bench_options& options) {
  const auto done = bench_cpu(options);
  return done ? "taken" : done.error().text;
}

TEST(bench_cpu, names_what_is_wrong_with_a_choice) {
  for (const char* shape : {"2048", "2048x", "x768", "8x768", "2048x768x2", "qwen3",
                            "16x16,"
                            "16x99999999"})
    EXPECT_THAT(refused({.shape = shape}), HasSubstr("N x K of the cpu part, as 2048x768"))
        << shape;
  EXPECT_THAT(refused({.shape = "16x16", .rows = {65}}), HasSubstr("1 to 64"));
  EXPECT_THAT(refused({.rows = {0}}), HasSubstr("1 to 64"));
  EXPECT_THAT(refused({.shape = "16x16", .peer = "/nowhere/peer.so"}),
              HasSubstr("setting --peer is /nowhere/peer.so"));
}

TEST(bench_cpu, a_backend_without_a_bench_is_refused_and_one_restricts_the_parts) {
  command_line line;
  line.kernels.backend = "cpu_ref";
  const auto unknown = run_bench_kernels(line);
  ASSERT_FALSE(unknown);
  EXPECT_THAT(unknown.error().text, HasSubstr("cpu_avx2, sm90_fp8, sm90_bf16"));
  line.kernels.backend = "cpu_avx2";
  line.kernels.part = "device";
  EXPECT_FALSE(run_bench_kernels(line));
}

TEST(bench_cpu, gives_products_and_experts_whose_oracle_passed) {
  if (!has_avx2()) GTEST_SKIP() << "cpu_avx2 cannot run on this processor";
  std::string said;
  const auto report = bench_cpu({.repeat = 1,
                                 .shape = "40x24",
                                 .rows = {1, 7},
                                 .peer = "none",
                                 .ring_bytes = k_ring_bytes,
                                 .say = [&](const std::string& line) { said += line + "\n"; }});
  ASSERT_TRUE(report) << report.error().text;
  ASSERT_EQ(report->rows.size(), 4U);
  EXPECT_EQ(report->errors, 0U);
  for (const auto& row : report->rows) {
    EXPECT_TRUE(row.at("oracle").at("pass")) << row;
    EXPECT_GT(row.at("cold").at("gflops"), 0) << row;
    EXPECT_GT(row.at("ceilings").at("read_gb_s_4_streams").at("median"), 0) << row;
    EXPECT_FALSE(row.contains("peer"));
  }
  EXPECT_EQ(report->rows[0].at("kernel"), "product");
  EXPECT_EQ(report->rows[3].at("kernel"), "expert");
  EXPECT_THAT(said, HasSubstr("peer: left out"));
  EXPECT_THAT(said, HasSubstr("load average"));
  EXPECT_TRUE(report->more.contains("load_average"));
}

TEST(bench_cpu, a_peer_stands_beside_it_only_where_its_results_are_right) {
  if (!has_avx2()) GTEST_SKIP() << "cpu_avx2 cannot run on this processor";
  const std::uint32_t rows[] = {3};
  const auto right = measure_products({32, 16}, rows, &scripted_peer<0>(),
                                      {.samples = 1, .ring_bytes = k_ring_bytes});
  ASSERT_EQ(right.size(), 1U);
  EXPECT_EQ(right[0].peer.form, "second");  // the first cannot
  EXPECT_GT(right[0].over_peer_cold(), 0);
  const auto wrong = measure_products({32, 16}, rows, &scripted_peer<1>(),
                                      {.samples = 1, .ring_bytes = k_ring_bytes});
  EXPECT_TRUE(wrong[0].peer.form.empty());
  EXPECT_EQ(wrong[0].over_peer_cold(), 0);
}

cpu_figures sample_figures() {
  cpu_figures f{.what = "product", .size = {2048, 768}, .rows = 4, .flops = 1e6};
  f.cold_us = {.median = 100, .min = 90, .max = 120, .count = 9};
  f.cold_of = {.median = 0.5};
  f.warm_us = {.median = 60, .min = 50};
  f.warm_of = {.max = 0.97};
  f.aim = aim_of_product(f.size, f.rows);
  return f;
}

TEST(cpu_figures, a_wrong_result_shows_no_figure) {
  cpu_figures f = sample_figures();
  EXPECT_THAT(cpu_table_text({f}, "", {}), HasSubstr("10.0"));
  EXPECT_TRUE(cpu_json(f, "", true).contains("cold"));
  for (const cpu_oracle bad : {cpu_oracle{.norm = 2e-5}, cpu_oracle{.worst = 1e-5},
                               cpu_oracle{.same_bits = false}, cpu_oracle{.norm = NAN}}) {
    f.oracle = bad;
    EXPECT_THAT(cpu_table_text({f}, "", {}), HasSubstr("oracle failed"));
    EXPECT_THAT(cpu_table_text({f}, "", {}), Not(HasSubstr("10.0")));
    EXPECT_FALSE(cpu_json(f, "", true).contains("cold"));
  }
}

TEST(cpu_figures, says_which_aims_were_missed) {
  const std::string text = cpu_table_text({sample_figures()}, "other", {.markdown = true});
  EXPECT_THAT(text, HasSubstr("0.50 (aim 0.86, missed)"));
  EXPECT_THAT(text, HasSubstr("0.97 (aim 0.94)"));
  EXPECT_THAT(text, HasSubstr("over other f32"));
  EXPECT_EQ(aim_of_product({100, 200}, 4).cold, 0);
  EXPECT_EQ(aim_of_product({768, 2048}, 3).cold, 0);
}

TEST(bench_combine, its_forms_agree) {
  const auto figures = bench_combine({.repeat = 1});
  ASSERT_TRUE(figures);
  ASSERT_FALSE(figures->empty());
  for (const kernel_figures& f : *figures) EXPECT_TRUE(f.agrees) << f.kernel;
}

}  // namespace
}  // namespace moetier::cli
