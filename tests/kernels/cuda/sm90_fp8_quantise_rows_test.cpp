#include "kernels/cuda/sm90_fp8_quantise_rows.hpp"

#include <cmath>
#include <limits>

#include "tests/kernels/cuda/gather_on_device.hpp"

namespace moetier::kernels::cuda {
namespace {

class sm90_fp8_quantise_rows : public device_test {};

TEST_F(sm90_fp8_quantise_rows, equals_its_twin) {
  for (const row_type type : {row_type::bf16, row_type::f32}) {
    for (const std::uint32_t hidden : {128u, 1152u, 7168u}) {
      for (const std::uint32_t rows : {1u, 9u, 130u, 601u}) {
        SCOPED_TRACE(testing::Message() << rows << " rows of " << hidden);
        gather_case c({.row_as = type,
                       .rows = rows,
                       .k_in = rows % 2 + 1,
                       .hidden_size = hidden,
                       .slots = rows % 3 + 1,
                       .tile_rows = rows == 130 ? 8u : 128u});
        expect_twin_gather(c, quantise_rows, size);
      }
    }
  }
}

// Zeros, subnormals, powers around every limit of E4M3, infinities, NaN, a value that rounds to
// even: block by block.
TEST_F(sm90_fp8_quantise_rows, equals_its_twin_on_values_at_the_edges) {
  constexpr float inf = std::numeric_limits<float>::infinity();
  for (const row_type type : {row_type::bf16, row_type::f32}) {
    gather_case c({.row_as = type, .rows = 64, .hidden_size = 1024, .slots = 1});
    for (std::uint32_t r = 0; r < 64; ++r) {
      std::vector<float> row(1024);
      for (std::uint32_t k = 0; k < 1024; ++k) {
        const std::uint32_t block = k / 128;
        const float sign = (k & 1u) != 0 ? -1.0F : 1.0F;
        const float step = static_cast<float>(k % 128) / 16.0F;
        row[k] = block == 0   ? sign * 0.0F
                 : block == 1 ? sign * 0x1p-149F * static_cast<float>(k % 7)
                 : block == 2 ? sign * std::ldexp(1.0F + step, -static_cast<int>(r) * 2)
                 : block == 3 ? sign * (k % 128 == r ? inf : step)
                 : block == 4 ? (k % 128 == 2 * r ? std::nanf("") : sign * step)
                 : block == 5 ? sign * std::ldexp(1.0F, -static_cast<int>(k % 40))
                 : block == 6 ? sign * std::numeric_limits<float>::max() / (1.0F + step)
                              : sign * (448.0F - step);
      }
      put_row(c.rows.data() + r * c.pitch, type == row_type::bf16, row);
    }
    expect_twin_gather(c, quantise_rows, size);
  }
}

TEST_F(sm90_fp8_quantise_rows, equals_its_twin_by_row) {
  for (const row_type type : {row_type::bf16, row_type::f32}) {
    for (const std::uint32_t k : {2u, 8u, 11u}) {
      for (const std::uint32_t rows : {512u, 515u, 1500u}) {
        SCOPED_TRACE(testing::Message() << rows << " rows of " << k << " positions");
        gather_case c({.row_as = type,
                       .rows = rows,
                       .k_in = k,
                       .hidden_size = rows == 1500 ? 640u : 2176u,
                       .slots = 19,
                       .tile_rows = k == 8 ? 64u : 128u,
                       .by_row = true});
        expect_twin_gather(c, quantise_rows, size);
        c.table.rows_live = rows - rows / 3;
        c.table.group();
        expect_twin_gather(c, quantise_rows, size);
      }
    }
  }
}

TEST_F(sm90_fp8_quantise_rows, zeroes_live_rows_that_ask_nothing_and_no_other) {
  gather_case c({.rows = 300, .hidden_size = 256, .zero_idle = true});
  c.table.rows_live = 250;
  c.table.group();
  expect_twin_gather(c, quantise_rows, size);
}

TEST_F(sm90_fp8_quantise_rows, writes_nothing_when_nothing_is_live) {
  gather_case c({.rows = 20, .hidden_size = 256, .zero_idle = true});
  c.table.rows_live = 0;
  c.table.group();
  expect_twin_gather(c, quantise_rows, size);
}

}  // namespace
}  // namespace moetier::kernels::cuda
