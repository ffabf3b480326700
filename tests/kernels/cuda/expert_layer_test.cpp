// Every ExpertLayer on a device against the fp64 oracle, and the promises of its header: rows that
// depend on no other row, poison that stays outside, empty calls, bad slots, graphs, re-use.
#include "kernels/cuda/expert_layer.hpp"

#include <gtest/gtest.h>

#include "tests/kernels/cuda/device_array.hpp"
#include "tests/kernels/cuda/layer_case.hpp"

namespace moetier::kernels::cuda {
namespace {

expert_shape shape_of(std::uint32_t hidden, std::uint32_t intermediate, quant_kind quant,
                      activation_kind activation = activation_kind::swiglu, bool bias = false) {
  return {.hidden_size = hidden,
          .intermediate_size = intermediate,
          .format = {.quant = quant, .stored = dtype::bf16},
          .activation = activation,
          .bias = bias};
}

struct candidate {
  const char* name;
  const char* identity;
  expert_shape shape;
  rounding how;
  double bound;  // of the norm, f32 out
};

std::ostream& operator<<(std::ostream& to, const candidate& c) { return to << c.name; }

// Small shapes with every kind of tail, and one a few blocks deep.
const candidate k_candidates[] = {
    {"ref_bf16", "moetier.cuda.ref.none", shape_of(72, 40, quant_kind::none), rounding::none, 1e-5},
    {"ref_fp8_block", "moetier.cuda.ref.fp8_block", shape_of(200, 136, quant_kind::fp8_block),
     rounding::none, 1e-5},
    {"ref_mxfp4", "moetier.cuda.ref.mxfp4", shape_of(96, 64, quant_kind::mxfp4), rounding::none,
     1e-5},
    {"fp8_one_block", "moetier.cuda.sm90_fp8.fp8_block", shape_of(128, 128, quant_kind::fp8_block),
     rounding::fp8, 2e-2},  // one flipped scale weighs more than with three blocks of K
    {"fp8_odd_blocks", "moetier.cuda.sm90_fp8.fp8_block",
     shape_of(1152, 384, quant_kind::fp8_block), rounding::fp8, 1e-2},
    {"fp8_deep", "moetier.cuda.sm90_fp8.fp8_block", shape_of(2048, 768, quant_kind::fp8_block),
     rounding::fp8, 1e-2},
    {"bf16_one_block", "moetier.cuda.sm90_bf16.none", shape_of(64, 64, quant_kind::none),
     rounding::bf16, 4e-3},
    {"bf16_odd_blocks", "moetier.cuda.sm90_bf16.none", shape_of(448, 192, quant_kind::none),
     rounding::bf16, 4e-3},
    {"bf16_deep", "moetier.cuda.sm90_bf16.none", shape_of(1024, 1472, quant_kind::none),
     rounding::bf16, 4e-3},
    {"bf16_gpt_oss", "moetier.cuda.sm90_bf16.none",
     shape_of(320, 320, quant_kind::none, activation_kind::swiglu_bias, true), rounding::bf16,
     4e-3},
};

class expert_layer : public device_test, public testing::WithParamInterface<candidate> {
 protected:
  layer_case made(std::uint32_t slots) {
    return layer_case(GetParam().identity, GetParam().shape, slots);
  }
  void expect_right(layer_case& c, const batch& b, const run_options& o, const char* what) {
    const run_result got = c.run(b, o);
    EXPECT_EQ(got.status, 0u) << what;
    const double bound =
        o.out_as == out_type::bf16 ? std::max(GetParam().bound, 4e-3) : GetParam().bound;
    EXPECT_LE(norm_error(got.out, c.expected_out(b, o.mode, GetParam().how)), bound) << what;
  }
};

// The variants inside a backend, by the hint that chooses them.
constexpr std::uint32_t k_few = 1;      // ladder, tiles of 8 rows
constexpr std::uint32_t k_some = 8;     // ladder, of 32
constexpr std::uint32_t k_more = 40;    // ladder, of 64
constexpr std::uint32_t k_many = 4096;  // straight

TEST_P(expert_layer, agrees_with_the_oracle_in_every_mode_and_type) {
  layer_case c = made(6);
  const batch b = c.random_batch(37, 3);
  for (const return_mode mode : {return_mode::partial, return_mode::exact}) {
    for (const row_type rows : {row_type::f32, row_type::bf16}) {
      for (const out_type out : {out_type::f32, out_type::bf16}) {
        for (const std::uint32_t hint : {k_few, k_some, k_more, k_many})
          expect_right(c, b, {mode, rows, out, hint}, "random");
      }
    }
  }
}

TEST_P(expert_layer, takes_any_number_of_rows_for_one_slot) {
  layer_case c = made(3);
  const batch all = c.make_batch(200, 1, [](std::uint32_t, std::uint32_t) { return 1; });
  for (const std::uint32_t m : {1u, 7u, 8u, 9u, 31u, 63u, 64u, 65u, 71u, 127u, 128u, 129u, 200u}) {
    const batch b = layer_case::first_of(all, m, c.shape().hidden_size);
    for (const std::uint32_t hint : {k_few, k_some, k_more, k_many}) {
      expect_right(c, b, {.rows_per_slot = hint}, "one slot");
      expect_right(c, b, {.mode = return_mode::exact, .rows_per_slot = hint}, "one slot, exact");
    }
  }
}

TEST_P(expert_layer, takes_skewed_routing_with_skips_and_duplicates) {
  layer_case c = made(9);
  const batch b = c.make_batch(150, 4, [&](std::uint32_t r, std::uint32_t j) -> std::int32_t {
    if (r % 7 == 0) return -1;               // a row with nothing to do
    if (j == 3) return r % 3 == 0 ? -1 : 0;  // slot 0 is hot
    if (j == 2) return static_cast<std::int32_t>(r % 5);
    return j == 1 && r % 11 == 0 ? 4 : static_cast<std::int32_t>((r * 3 + j) % 8);
  });
  for (const std::uint32_t hint : {k_few, k_some, k_more, k_many}) {
    expect_right(c, b, {.rows_per_slot = hint}, "skewed");
    expect_right(c, b, {.mode = return_mode::exact, .rows_per_slot = hint}, "skewed, exact");
  }
}

TEST_P(expert_layer, writes_zeros_for_live_rows_that_ask_no_expert) {
  layer_case c = made(2);
  const batch one =
      c.make_batch(20, 1, [](std::uint32_t r, std::uint32_t) { return r % 2 == 0 ? -1 : 1; });
  const batch none = c.make_batch(20, 2, [](std::uint32_t, std::uint32_t) { return -1; });
  for (const out_type out : {out_type::f32, out_type::bf16}) {
    expect_right(c, one, {.out_as = out}, "half of them");
    expect_right(c, none, {.out_as = out}, "all of them");
  }
}

TEST_P(expert_layer, asks_every_expert_when_k_is_the_number_of_slots) {
  layer_case c = made(8);
  expect_right(c, c.random_batch(19, 8), {}, "all experts");
}

TEST_P(expert_layer, does_nothing_for_no_rows) {
  layer_case c = made(2);
  batch b = c.random_batch(5, 2);
  b.rows_live = 0;
  b.rows.clear();
  b.slots.clear();
  b.weights.clear();
  const run_result none_live = c.run(b, {});
  EXPECT_EQ(none_live.status, 0u);
  for (const float x : none_live.out) EXPECT_TRUE(std::isnan(x));
  EXPECT_TRUE(c.layer().compute({}, nullptr).ok());
  expect_right(c, c.random_batch(5, 2), {}, "afterwards");
}

TEST_P(expert_layer, gives_the_same_bits_twice) {
  layer_case c = made(5);
  const batch b = c.random_batch(150, 3);
  for (const std::uint32_t hint : {k_few, k_some, k_more, k_many}) {
    const run_options o{.rows_per_slot = hint};
    EXPECT_TRUE(equal_bits(c.run(b, o).out, c.run(b, o).out));
  }
}

TEST_P(expert_layer, gives_a_row_the_same_bits_whatever_else_is_in_the_batch) {
  layer_case c = made(4);
  if (!c.layer().row_invariant()) GTEST_SKIP() << "not declared";
  const batch many = c.make_batch(140, 2, [](std::uint32_t r, std::uint32_t j) {
    return static_cast<std::int32_t>(j == 0 ? 0 : 1 + r % 3);
  });
  const run_result all = c.run(many, {.mode = return_mode::exact, .rows_per_slot = k_many});
  const std::size_t h = c.shape().hidden_size;
  for (const std::uint32_t r : {0u, 8u, 77u, 139u}) {
    batch one = many;
    one.rows_live = 1;
    one.rows.assign(many.rows.begin() + static_cast<std::ptrdiff_t>(r * h),
                    many.rows.begin() + static_cast<std::ptrdiff_t>((r + 1) * h));
    one.slots = {many.slots[2 * r], many.slots[2 * r + 1]};
    one.weights = {0.5F, 0.5F};
    const run_result alone = c.run(one, {.mode = return_mode::exact, .rows_per_slot = k_few});
    EXPECT_TRUE(
        equal_bits(std::span(alone.out).first(2 * h), std::span(all.out).subspan(2 * r * h, 2 * h)))
        << "row " << r;
  }
}

TEST_P(expert_layer, keeps_nan_and_infinity_in_their_own_row) {
  layer_case c = made(2);
  const std::size_t h = c.shape().hidden_size;
  batch b = c.make_batch(
      40, 2, [](std::uint32_t, std::uint32_t j) { return static_cast<std::int32_t>(j); });
  const batch clean = b;
  b.rows[3 * h + 5] = std::numeric_limits<float>::quiet_NaN();
  b.rows[21 * h + h - 1] = std::numeric_limits<float>::infinity();
  for (const std::uint32_t hint : {k_few, k_some, k_more, k_many}) {
    const run_options o{.rows_per_slot = hint};
    const run_result got = c.run(b, o);
    const run_result want = c.run(clean, o);
    for (std::size_t r = 0; r < 40; ++r) {
      const auto row = std::span(got.out).subspan(r * h, h);
      if (r == 3 || r == 21) {
        EXPECT_TRUE(std::any_of(row.begin(), row.end(), [](float x) { return !std::isfinite(x); }));
      } else {
        EXPECT_TRUE(equal_bits(row, std::span(want.out).subspan(r * h, h))) << "row " << r;
      }
    }
  }
}

TEST_P(expert_layer, takes_rows_of_zeros_and_tiny_values) {
  layer_case c = made(2);
  const std::size_t h = c.shape().hidden_size;
  batch b = c.random_batch(12, 1);
  std::fill_n(b.rows.begin(), h, 0.0F);
  for (std::size_t i = 0; i < h; ++i) b.rows[h + i] *= 0x1p-100F;
  expect_right(c, b, {}, "tiny");
}

TEST_P(expert_layer, reports_a_slot_that_is_not_there_and_one_without_a_page) {
  layer_case c = made(4);
  batch b = c.random_batch(10, 2);
  b.slots[7] = 4;
  EXPECT_EQ(c.run(b, {}).status, static_cast<std::uint32_t>(device_failure::bad_slot) | 4u << 8);
  b.slots[7] = 2;
  c.empty_slot(2);
  EXPECT_EQ(c.run(b, {}).status, static_cast<std::uint32_t>(device_failure::bad_slot) | 2u << 8);
}

INSTANTIATE_TEST_SUITE_P(every, expert_layer, testing::ValuesIn(k_candidates),
                         [](const auto& of) { return std::string(of.param.name); });

}  // namespace
}  // namespace moetier::kernels::cuda
