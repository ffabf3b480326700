// What every CPU backend promises: right values, exact and partial writes, and that nothing else is
// read or written.
#include "kernels/backend.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/kernels/expert_case.hpp"

namespace moetier::kernels {
namespace {

constexpr float k_nan = std::numeric_limits<float>::quiet_NaN();
constexpr float k_canary = -12345.0F;

class a_cpu_backend : public testing::TestWithParam<std::string_view> {
 protected:
  void SetUp() override {
    if (!runs_here(GetParam())) GTEST_SKIP() << GetParam() << " cannot run on this processor";
  }
};

double frobenius_error(std::span<const float> y, std::span<const double> truth) {
  double square = 0;
  double error = 0;
  for (std::size_t i = 0; i < truth.size(); ++i) {
    square += truth[i] * truth[i];
    error += (double{y[i]} - truth[i]) * (double{y[i]} - truth[i]);
  }
  return square == 0 ? std::sqrt(error) : std::sqrt(error / square);
}

TEST_P(a_cpu_backend, agrees_with_the_oracle_for_any_shape_and_stored_type) {
  std::mt19937 random(11);
  const std::pair<std::uint32_t, std::uint32_t> shapes[] = {
      {1, 1},   {1, 64},    {64, 1},  {2, 3},   {3, 2},     {5, 9},   {7, 8},   {8, 7},
      {15, 17}, {16, 16},   {17, 15}, {31, 33}, {48, 24},   {63, 65}, {130, 7}, {64, 96},
      {96, 64}, {257, 100}, {33, 12}, {128, 1}, {2880, 64}, {4100, 5}};
  for (const auto& [hidden, units] : shapes) {
    for (const dtype stored : {dtype::bf16, dtype::f16, dtype::f32}) {
      const expert_shape shape{
          .hidden_size = hidden, .intermediate_size = units, .format = {.stored = stored}};
      const auto backend = backend_of(GetParam(), shape);
      ASSERT_NE(backend, nullptr);
      const expert e = random_expert(shape, random);
      page_table pages(*backend);
      pages.add(e);
      for (const std::size_t rows : {1u, 2u, 3u, 6u, 7u, 13u}) {
        const std::vector<float> x = random_rows(rows * hidden, random);
        const std::vector<float> y = outputs_of(*backend, pages, 0, x);
        ASSERT_EQ(y.size(), x.size());
        std::vector<double> truth(x.size());
        for (std::size_t r = 0; r < rows; ++r)
          reference_expert(shape, e.tensors(), std::span(x).subspan(r * hidden, hidden),
                           std::span(truth).subspan(r * hidden, hidden));
        // One f32 chain drifts with the root of its length: 1e-6 holds up to a few hundred terms
        // where rows and units are many enough to average, 1e-5 everywhere.
        const bool averaged = hidden <= 512 && hidden * rows >= 64 && units >= 8;
        EXPECT_LE(frobenius_error(y, truth), averaged ? 1e-6 : 1e-5)
            << "H " << hidden << " I " << units << " " << dtype_name(stored) << " rows " << rows;
      }
    }
  }
}

// Three regions with different pitches, the middle one without rows; slots with replicas of two
// experts, k_in 3 with a position that nobody uses; NaN around everything.
struct scattered_call {
  static constexpr std::uint32_t k_in = 3;
  expert_shape shape{.hidden_size = 37, .intermediate_size = 21};
  std::mt19937 random{5};
  std::vector<expert> experts{random_expert(shape, random), random_expert(shape, random)};
  std::vector<std::vector<float>> x, y;
  std::vector<row_region> in;
  std::vector<out_region> out;
  std::vector<expert_entry> entries;
  std::size_t out_pitch_floats = 40;

  explicit scattered_call(return_mode mode) {
    const std::uint32_t live[] = {5, 0, 70};
    const std::size_t in_pitch_floats[] = {37, 50, 64};
    for (std::size_t r = 0; r < 3; ++r) {
      const std::uint32_t capacity = live[r] + 3;
      x.emplace_back(capacity * in_pitch_floats[r], k_nan);
      for (std::uint32_t row = 0; row < live[r]; ++row) {
        const std::vector<float> values = random_rows(shape.hidden_size, random);
        std::copy(values.begin(), values.end(), &x[r][row * in_pitch_floats[r]]);
        // Position 1 is unused; every seventh row asks for nothing.
        if (row % 7 == 6) continue;
        const auto region = static_cast<std::uint32_t>(r);
        entries.push_back({region, row, 0, static_cast<std::uint16_t>(row % 3), 0.25F});
        entries.push_back({region, row, 2, static_cast<std::uint16_t>((row + 1) % 3), -1.5F});
      }
      const std::uint32_t lines = mode == return_mode::exact ? capacity * k_in : capacity;
      y.emplace_back(lines * out_pitch_floats, k_canary);
    }
    for (std::size_t r = 0; r < 3; ++r) {
      in.push_back({.base = reinterpret_cast<const std::byte*>(x[r].data()),
                    .pitch_bytes = in_pitch_floats[r] * sizeof(float),
                    .rows_live = live[r]});
      out.push_back({.base = reinterpret_cast<std::byte*>(y[r].data()),
                     .pitch_bytes = out_pitch_floats * sizeof(float)});
    }
    std::vector<expert_entry> scratch(entries.size());
    std::vector<std::uint32_t> counts(3);
    group_entries(entries, scratch, counts);
  }

  const expert& in_slot(std::uint16_t slot) const { return experts[slot == 1 ? 1 : 0]; }
  std::span<const float> row(const expert_entry& e) const {
    return std::span(x[e.region])
        .subspan(e.row * in[e.region].pitch_bytes / sizeof(float), shape.hidden_size);
  }
  compute_status run(std::string_view name, return_mode mode, unsigned threads = 1) {
    const auto backend = backend_of(name, shape, threads);
    page_table pages(*backend);
    for (std::uint16_t slot = 0; slot < 3; ++slot) pages.add(in_slot(slot));
    return run_on(*backend, {.in = in,
                             .out = out,
                             .entries = entries,
                             .pages = pages.table(),
                             .k_in = k_in,
                             .mode = mode,
                             .workspace = {}});
  }
};

TEST_P(a_cpu_backend, sums_weighted_rows_in_partial_mode_and_writes_zero_without_entries) {
  scattered_call c(return_mode::partial);
  ASSERT_EQ(c.run(GetParam(), return_mode::partial), compute_status::ok);
  std::vector<std::vector<double>> truth;
  for (std::size_t r = 0; r < 3; ++r) truth.emplace_back(c.y[r].size(), double{k_canary});
  for (std::size_t r = 0; r < 3; ++r) {
    for (std::uint32_t row = 0; row < c.in[r].rows_live; ++row)
      std::fill_n(&truth[r][row * c.out_pitch_floats], c.shape.hidden_size, 0.0);
  }
  std::vector<double> y(c.shape.hidden_size);
  for (const expert_entry& e : c.entries) {
    reference_expert(c.shape, c.in_slot(e.slot).tensors(), c.row(e), y);
    for (std::size_t n = 0; n < y.size(); ++n)
      truth[e.region][e.row * c.out_pitch_floats + n] += double{e.weight} * y[n];
  }
  for (std::size_t r = 0; r < 3; ++r) {
    for (std::size_t i = 0; i < truth[r].size(); ++i)
      ASSERT_NEAR(c.y[r][i], truth[r][i], 1e-5) << "region " << r << " float " << i;
  }
  EXPECT_FALSE(std::signbit(c.y[2][6 * c.out_pitch_floats]));
}

TEST_P(a_cpu_backend, writes_unweighted_rows_in_exact_mode_and_leaves_other_positions_alone) {
  scattered_call c(return_mode::exact);
  ASSERT_EQ(c.run(GetParam(), return_mode::exact), compute_status::ok);
  std::vector<std::vector<double>> truth;
  for (std::size_t r = 0; r < 3; ++r) truth.emplace_back(c.y[r].size(), double{k_canary});
  std::vector<double> y(c.shape.hidden_size);
  for (const expert_entry& e : c.entries) {
    reference_expert(c.shape, c.in_slot(e.slot).tensors(), c.row(e), y);
    std::copy(y.begin(), y.end(),
              &truth[e.region][(e.row * c.k_in + e.position) * c.out_pitch_floats]);
  }
  for (std::size_t r = 0; r < 3; ++r) {
    for (std::size_t i = 0; i < truth[r].size(); ++i)
      ASSERT_NEAR(c.y[r][i], truth[r][i], 1e-5) << "region " << r << " float " << i;
  }
}

TEST_P(a_cpu_backend, partial_mode_is_the_fma_over_slots_of_what_exact_mode_returns) {
  scattered_call exact(return_mode::exact);
  scattered_call partial(return_mode::partial);
  ASSERT_EQ(exact.run(GetParam(), return_mode::exact), compute_status::ok);
  ASSERT_EQ(partial.run(GetParam(), return_mode::partial, 2), compute_status::ok);
  std::vector<std::vector<float>> sums;
  for (std::size_t r = 0; r < 3; ++r) sums.emplace_back(partial.y[r].size(), k_canary);
  for (std::size_t r = 0; r < 3; ++r) {
    for (std::uint32_t row = 0; row < exact.in[r].rows_live; ++row)
      std::fill_n(&sums[r][row * exact.out_pitch_floats], exact.shape.hidden_size, 0.0F);
  }
  for (const expert_entry& e : exact.entries) {
    const float* y = &exact.y[e.region][(e.row * exact.k_in + e.position) * exact.out_pitch_floats];
    float* sum = &sums[e.region][e.row * exact.out_pitch_floats];
    for (std::size_t n = 0; n < exact.shape.hidden_size; ++n)
      sum[n] = std::fma(e.weight, y[n], sum[n]);
  }
  for (std::size_t r = 0; r < 3; ++r) EXPECT_TRUE(equal_bits(partial.y[r], sums[r])) << r;
}

TEST_P(a_cpu_backend, keeps_a_row_that_is_not_finite_to_itself) {
  const expert_shape shape{.hidden_size = 24, .intermediate_size = 16};
  std::mt19937 random(3);
  const auto backend = backend_of(GetParam(), shape);
  page_table pages(*backend);
  pages.add(random_expert(shape, random));
  std::vector<float> x = random_rows(9 * 24, random);
  const std::vector<float> clean = outputs_of(*backend, pages, 0, x);
  x[4 * 24 + 7] = k_nan;
  x[2 * 24] = std::numeric_limits<float>::infinity();
  const std::vector<float> spoiled = outputs_of(*backend, pages, 0, x);
  for (std::size_t r = 0; r < 9; ++r) {
    const auto a = std::span(clean).subspan(r * 24, 24);
    const auto b = std::span(spoiled).subspan(r * 24, 24);
    if (r == 2 || r == 4)
      EXPECT_FALSE(std::isfinite(b[0])) << r;
    else
      EXPECT_TRUE(equal_bits(a, b)) << r;
  }
}

TEST_P(a_cpu_backend, serves_a_row_that_names_a_slot_twice_as_two_entries) {
  const expert_shape shape{.hidden_size = 12, .intermediate_size = 20};
  std::mt19937 random(4);
  const auto backend = backend_of(GetParam(), shape);
  page_table pages(*backend);
  pages.add(random_expert(shape, random));
  const std::vector<float> x = random_rows(12, random);
  const std::vector<float> y = outputs_of(*backend, pages, 0, x);
  std::vector<float> sum(12, k_nan);
  const row_region in = rows_in(x, 12);
  const out_region out = rows_out(sum, 12);
  const expert_entry entries[] = {{.position = 0, .weight = 0.5F}, {.position = 1, .weight = 2.0F}};
  ASSERT_EQ(run_on(*backend, {.in = {&in, 1},
                              .out = {&out, 1},
                              .entries = entries,
                              .pages = pages.table(),
                              .k_in = 2,
                              .mode = return_mode::partial,
                              .workspace = {}}),
            compute_status::ok);
  for (std::size_t n = 0; n < 12; ++n)
    EXPECT_EQ(sum[n], std::fma(2.0F, y[n], std::fma(0.5F, y[n], 0.0F)));
}

TEST_P(a_cpu_backend, refuses_a_slot_without_an_expert_before_it_writes_anything) {
  const expert_shape shape{.hidden_size = 8, .intermediate_size = 8};
  std::mt19937 random(6);
  const auto backend = backend_of(GetParam(), shape);
  page_table pages(*backend);
  pages.add(random_expert(shape, random));
  pages.add_empty();
  const std::vector<float> x = random_rows(16, random);
  for (const auto bad : std::initializer_list<std::uint16_t>{1, 2, 65535}) {
    std::vector<float> y(16, k_canary);
    const row_region in = rows_in(x, 8);
    const out_region out = rows_out(y, 8);
    const expert_entry entries[] = {{.row = 0, .slot = 0, .weight = 1.0F},
                                    {.row = 1, .slot = bad, .weight = 1.0F}};
    EXPECT_EQ(run_on(*backend, {.in = {&in, 1},
                                .out = {&out, 1},
                                .entries = entries,
                                .pages = pages.table(),
                                .k_in = 1,
                                .mode = return_mode::partial,
                                .workspace = {}}),
              compute_status::bad_slot);
    EXPECT_TRUE(equal_bits(y, std::vector<float>(16, k_canary)));
  }
}

TEST_P(a_cpu_backend, takes_zero_rows_with_null_pointers) {
  const auto backend = backend_of(GetParam(), {.hidden_size = 8, .intermediate_size = 8});
  const row_region in{};
  const out_region out{};
  EXPECT_EQ(backend->run({.in = {&in, 1},
                          .out = {&out, 1},
                          .entries = {},
                          .pages = {},
                          .k_in = 8,
                          .mode = return_mode::partial,
                          .workspace = {}}),
            compute_status::ok);
  EXPECT_EQ(backend->run({.in = {},
                          .out = {},
                          .entries = {},
                          .pages = {},
                          .k_in = 0,
                          .mode = return_mode::exact,
                          .workspace = {}}),
            compute_status::ok);
  EXPECT_EQ(backend->workspace_bytes(0, 8), 0u);
}

TEST_P(a_cpu_backend, refuses_a_workspace_one_byte_short_and_asks_monotonely) {
  const expert_shape shape{.hidden_size = 40, .intermediate_size = 24};
  std::mt19937 random(7);
  const auto backend = backend_of(GetParam(), shape, 2);
  page_table pages(*backend);
  pages.add(random_expert(shape, random));
  const std::vector<float> x = random_rows(3 * 40, random);
  std::vector<float> y(3 * 40, k_canary);
  const row_region in = rows_in(x, 40);
  const out_region out = rows_out(y, 40);
  const expert_entry entry{.weight = 1.0F};
  aligned_bytes workspace(backend->workspace_bytes(3, 2));
  expert_call call{.in = {&in, 1},
                   .out = {&out, 1},
                   .entries = {&entry, 1},
                   .pages = pages.table(),
                   .k_in = 2,
                   .mode = return_mode::partial,
                   .workspace = workspace.span().first(workspace.span().size() - 1)};
  EXPECT_EQ(backend->run(call), compute_status::workspace_short);
  EXPECT_EQ(y[0], k_canary);
  call.workspace = workspace.span();
  EXPECT_EQ(backend->run(call), compute_status::ok);
  std::size_t last = 0;
  for (std::uint32_t rows = 0; rows < 300; ++rows) {
    EXPECT_LE(last, backend->workspace_bytes(rows, 4));
    EXPECT_LE(backend->workspace_bytes(rows, 3), backend->workspace_bytes(rows, 4));
    last = backend->workspace_bytes(rows, 4);
  }
}

TEST_P(a_cpu_backend, packs_every_byte_of_a_page_the_same_way_each_time) {
  std::mt19937 random(8);
  for (const auto& [hidden, units] : {std::pair{1u, 1u}, {5u, 3u}, {17u, 9u}, {64u, 32u}}) {
    for (const dtype stored : {dtype::bf16, dtype::f16, dtype::f32}) {
      const expert_shape shape{
          .hidden_size = hidden, .intermediate_size = units, .format = {.stored = stored}};
      const auto backend = backend_of(GetParam(), shape);
      EXPECT_EQ(backend->page_bytes() % 64, 0u);
      const expert e = random_expert(shape, random);
      aligned_bytes a(backend->page_bytes());
      aligned_bytes b(backend->page_bytes());
      std::memset(a.data(), 0x00, backend->page_bytes());
      std::memset(b.data(), 0xff, backend->page_bytes());
      backend->pack_page(e.tensors(), a.span());
      backend->pack_page(e.tensors(), b.span());
      EXPECT_EQ(std::memcmp(a.data(), b.data(), backend->page_bytes()), 0);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(each, a_cpu_backend, testing::Values("cpu_ref", "cpu_avx2"),
                         [](const auto& each_backend) { return std::string(each_backend.param); });

}  // namespace
}  // namespace moetier::kernels
