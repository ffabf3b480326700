// The bits of y(row, slot) are those of one chain of fma over ascending k, whatever surrounds the
// row: other rows, order of entries, slot number, threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "kernels/math/house_math.hpp"
#include "kernels/matrix_view.hpp"
#include "tests/kernels/expert_case.hpp"

namespace moetier::kernels {
namespace {

// Written out apart from the backends, on std::fma.
std::vector<float> chained(const expert_shape& shape, const expert& e, std::span<const float> x) {
  const std::size_t hidden = shape.hidden_size;
  const std::size_t units = shape.intermediate_size;
  const matrix_view gates(shape.format, e.gate, shape.intermediate_size, shape.hidden_size);
  const matrix_view ups(shape.format, e.up, shape.intermediate_size, shape.hidden_size);
  const matrix_view downs(shape.format, e.down, shape.hidden_size, shape.intermediate_size);
  std::vector<float> activated(units);
  std::vector<float> y(hidden);
  for (std::size_t i = 0; i < units; ++i) {
    float gate = 0;
    float up = 0;
    for (std::size_t k = 0; k < hidden; ++k) {
      gate = std::fma(gates.value(i, k), x[k], gate);
      up = std::fma(ups.value(i, k), x[k], up);
    }
    activated[i] = house_swiglu(gate, up);
  }
  for (std::size_t n = 0; n < hidden; ++n) {
    for (std::size_t i = 0; i < units; ++i) y[n] = std::fma(downs.value(n, i), activated[i], y[n]);
  }
  return y;
}

class the_bits_of_a_row : public testing::TestWithParam<std::string_view> {
 protected:
  void SetUp() override {
    if (!runs_here(GetParam())) GTEST_SKIP() << GetParam() << " cannot run on this processor";
  }
};

TEST_P(the_bits_of_a_row, are_those_of_one_ascending_chain_for_every_number_of_rows) {
  std::mt19937 random(21);
  // The last shape has more depth than one block of K.
  for (const auto& [hidden, units] : {std::pair{50u, 41u}, {256u, 72u}, {4099u, 10u}}) {
    for (const dtype stored : {dtype::bf16, dtype::f16, dtype::f32}) {
      const expert_shape shape{
          .hidden_size = hidden, .intermediate_size = units, .format = {.stored = stored}};
      const auto backend = backend_of(GetParam(), shape);
      EXPECT_TRUE(backend->row_invariant());
      const expert e = random_expert(shape, random);
      page_table pages(*backend);
      pages.add(e);
      const std::size_t most = hidden > 1000 ? 9 : 20;
      const std::vector<float> x = random_rows(most * hidden, random);
      std::vector<float> truth;
      for (std::size_t r = 0; r < most; ++r) {
        const auto y = chained(shape, e, std::span(x).subspan(r * hidden, hidden));
        truth.insert(truth.end(), y.begin(), y.end());
      }
      for (std::size_t m = 1; m <= most; ++m) {
        const std::vector<float> some(x.end() - static_cast<std::ptrdiff_t>(m * hidden), x.end());
        EXPECT_TRUE(equal_bits(outputs_of(*backend, pages, 0, some),
                               std::span(truth).subspan((most - m) * hidden)))
            << "m " << m << " H " << hidden << " I " << units << " " << dtype_name(stored);
      }
    }
  }
}

TEST_P(the_bits_of_a_row, do_not_depend_on_threads_blocks_or_waves) {
  // Enough work to wake the other threads, enough rows for several blocks and waves.
  const std::size_t hidden = 300;
  const expert_shape shape{.hidden_size = 300, .intermediate_size = 200};
  std::mt19937 random(22);
  const expert e = random_expert(shape, random);
  const std::size_t rows = GetParam() == "cpu_ref" ? 70 : 300;
  const std::vector<float> x = random_rows(rows * hidden, random);
  std::vector<float> truth;
  for (const unsigned threads : {1u, 2u, 3u, 5u}) {
    const auto backend = backend_of(GetParam(), shape, threads);
    page_table pages(*backend);
    pages.add(e);
    const std::vector<float> y = outputs_of(*backend, pages, 0, x);
    if (threads == 1) {
      truth = y;
      const auto first = chained(shape, e, std::span(x).first(hidden));
      EXPECT_TRUE(equal_bits(std::span(y).first(hidden), first));
    }
    EXPECT_TRUE(equal_bits(y, truth)) << threads << " threads";
    const std::vector<float> tail(x.begin() + 64 * 300, x.end());
    // Threads meet in another order each time.
    for (int round = 0; round < (GetParam() == "cpu_ref" ? 1 : 20); ++round) {
      ASSERT_TRUE(
          equal_bits(outputs_of(*backend, pages, 0, tail), std::span(truth).subspan(64 * hidden)))
          << threads << " threads, round " << round;
    }
  }
}

TEST_P(the_bits_of_a_row, do_not_depend_on_slot_number_or_order_of_rows) {
  const expert_shape shape{.hidden_size = 65, .intermediate_size = 30};
  std::mt19937 random(23);
  const expert e = random_expert(shape, random);
  const expert other = random_expert(shape, random);
  const auto backend = backend_of(GetParam(), shape, 2);
  page_table pages(*backend);
  pages.add(e);
  pages.add(other);
  pages.add(e);
  constexpr std::size_t k_rows = 40;
  const std::vector<float> x = random_rows(k_rows * 65, random);
  const std::vector<float> truth = outputs_of(*backend, pages, 0, x);
  EXPECT_TRUE(equal_bits(outputs_of(*backend, pages, 2, x), truth));

  std::vector<std::size_t> order(k_rows);
  std::iota(order.begin(), order.end(), 0u);
  std::shuffle(order.begin(), order.end(), random);
  std::vector<float> shuffled;
  std::vector<expert_entry> entries;
  std::vector<float> y(k_rows * 65);
  for (std::size_t r = 0; r < k_rows; ++r) {
    const auto row = std::span(x).subspan(order[r] * 65, 65);
    shuffled.insert(shuffled.end(), row.begin(), row.end());
    entries.push_back({.row = static_cast<std::uint32_t>(r),
                       .slot = static_cast<std::uint16_t>(order[r] % 2 == 0 ? 0 : 2)});
  }
  std::vector<expert_entry> scratch(k_rows);
  std::vector<std::uint32_t> counts(3);
  group_entries(entries, scratch, counts);
  const row_region in = rows_in(shuffled, 65);
  const out_region out = rows_out(y, 65);
  ASSERT_EQ(run_on(*backend, {.in = {&in, 1},
                              .out = {&out, 1},
                              .entries = entries,
                              .pages = pages.table(),
                              .k_in = 1,
                              .mode = return_mode::exact,
                              .workspace = {}}),
            compute_status::ok);
  for (std::size_t r = 0; r < k_rows; ++r)
    EXPECT_TRUE(
        equal_bits(std::span(y).subspan(r * 65, 65), std::span(truth).subspan(order[r] * 65, 65)))
        << r;
}

INSTANTIATE_TEST_SUITE_P(each, the_bits_of_a_row, testing::Values("cpu_ref", "cpu_avx2"),
                         [](const auto& each_backend) { return std::string(each_backend.param); });

}  // namespace
}  // namespace moetier::kernels
