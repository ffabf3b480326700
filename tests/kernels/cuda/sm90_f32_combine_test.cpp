#include "kernels/cuda/sm90_f32_combine.hpp"

#include "kernels/reference/combine_rows.hpp"
#include "tests/kernels/cuda/combine_case.hpp"
#include "tests/kernels/cuda/device_array.hpp"

namespace moetier::kernels::cuda {
namespace {

void expect_twin(combine_case& c, const device_size& size) {
  const auto ids = on_device(c.slot_ids);
  const auto weights = on_device(c.weights);
  const auto live = on_device(std::vector{c.rows_live});
  const auto y = on_device(c.y.copy());
  const auto out = on_device(c.out.copy());
  combine_args args = c.args();
  args.slot_ids = ids.get();
  args.weights = weights.get();
  args.rows_live = live.get();
  args.y = y.get();
  args.out = out.get();
  ASSERT_EQ(combine_rows(args, size, nullptr).error, 0);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  ASSERT_TRUE(reference::combine_rows(c.args()).ok());
  EXPECT_TRUE(on_host(out, c.out.size()) == c.out.copy());
}

class sm90_f32_combine : public device_test {};

TEST_F(sm90_f32_combine, equals_its_twin_in_bits) {
  for (const out_type y_as : {out_type::f32, out_type::bf16}) {
    for (const out_type out_as : {out_type::f32, out_type::bf16}) {
      for (const std::uint32_t hidden : {8u, 248u, 2048u, 2880u}) {
        for (const std::uint32_t k : {1u, 2u, 8u, 9u, 32u}) {
          SCOPED_TRACE(testing::Message() << hidden << " columns, " << k << " positions");
          combine_case c({.rows = 70,
                          .k_in = k,
                          .hidden_size = hidden,
                          .slots = k == 8 ? 3u : 300u,
                          .y_as = y_as,
                          .out_as = out_as});
          c.rows_live = 66;
          expect_twin(c, size);
        }
      }
    }
  }
}

TEST_F(sm90_f32_combine, writes_plus_zero_where_a_row_asks_nothing) {
  combine_case c({.rows = 3, .k_in = 2, .hidden_size = 512});
  c.slot_ids = {-1, -1, 0, 1, -1, -1};
  c.rows_live = 2;
  expect_twin(c, size);
}

}  // namespace
}  // namespace moetier::kernels::cuda
