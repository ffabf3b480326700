#include "kernels/cuda/sm90_bf16_gather_rows.hpp"

#include "tests/kernels/cuda/gather_on_device.hpp"

namespace moetier::kernels::cuda {
namespace {

class sm90_bf16_gather_rows : public device_test {};

TEST_F(sm90_bf16_gather_rows, equals_its_twin) {
  for (const row_type type : {row_type::bf16, row_type::f32}) {
    for (const std::uint32_t hidden : {64u, 576u, 2880u}) {
      for (const std::uint32_t rows : {1u, 9u, 130u, 601u}) {
        SCOPED_TRACE(testing::Message() << rows << " rows of " << hidden);
        gather_case c({.format = gemm_format::bf16,
                       .row_as = type,
                       .rows = rows,
                       .k_in = rows % 2 + 1,
                       .hidden_size = hidden,
                       .slots = rows % 3 + 1,
                       .tile_rows = rows == 130 ? 8u : 128u});
        expect_twin_gather(c, gather_rows, size);
      }
    }
  }
}

TEST_F(sm90_bf16_gather_rows, equals_its_twin_by_row) {
  for (const row_type type : {row_type::bf16, row_type::f32}) {
    for (const std::uint32_t k : {2u, 8u, 11u}) {
      for (const std::uint32_t rows : {512u, 515u, 1500u}) {
        SCOPED_TRACE(testing::Message() << rows << " rows of " << k << " positions");
        gather_case c({.format = gemm_format::bf16,
                       .row_as = type,
                       .rows = rows,
                       .k_in = k,
                       .hidden_size = rows == 1500 ? 640u : 2176u,
                       .slots = 19,
                       .tile_rows = k == 8 ? 64u : 128u,
                       .by_row = true});
        expect_twin_gather(c, gather_rows, size);
        c.table.rows_live = rows - rows / 3;
        c.table.group();
        expect_twin_gather(c, gather_rows, size);
      }
    }
  }
}

TEST_F(sm90_bf16_gather_rows, zeroes_live_rows_that_ask_nothing_and_no_other) {
  gather_case c({.format = gemm_format::bf16, .rows = 300, .hidden_size = 320, .zero_idle = true});
  c.table.rows_live = 250;
  c.table.group();
  expect_twin_gather(c, gather_rows, size);
}

}  // namespace
}  // namespace moetier::kernels::cuda
