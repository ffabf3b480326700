// Activations against double, the worked values of the MoE layer, and both forms in bits.
#include "kernels/activation/activate.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

#include "kernels/activation/activation_arguments.hpp"
#include "kernels/reference/reference_expert.hpp"
#include "tests/kernels/activation_avx2_probe.hpp"
#include "tests/kernels/expert_case.hpp"

namespace moetier::kernels {
namespace {

using enum activation_kind;

constexpr std::array k_kinds = {swiglu, geglu,       gelu, relu,        silu,
                                relu2,  swiglu_bias, situ, swiglu_step, geglu_tanh};

TEST(conformance_15_activations, give_the_worked_values) {
  const auto near = [](float value, double truth) {
    EXPECT_NEAR(value, truth, 1e-6 * std::max(1.0, std::fabs(truth)));
  };
  near(activate(swiglu, 1, 2, {}), 1.462117);
  near(activate(swiglu, 12, -15, {.limit = 10}), -99.995460);
  EXPECT_NEAR(activate(swiglu, -12, 15, {.limit = 10}), -7.373010e-4, 1e-9);
  const activation_constants gpt_oss{.alpha = 1.702F, .beta = 1, .limit = 7};
  near(activate(swiglu_bias, 1, 2, gpt_oss), 2.537387);
  near(activate(swiglu_bias, 9, -9, gpt_oss), -41.999719);
  EXPECT_NEAR(activate(swiglu_bias, -9, 9, gpt_oss), -1.602542e-5, 1e-10);
  near(activate(situ, 1, 2, {.alpha = 3, .beta = 4}), 1.303418);
  near(activate(relu2, 0, 3, {}), 9);
  near(activate(relu, 0, -3, {}), 0);
  near(activate(geglu, 1, 1, {}), 0.8413447);
  near(activate(geglu_tanh, 1, 1, {}), 0.8411920);
  near(activate(gelu, 0, -1, {}), -0.1586553);
  near(activate(silu, 0, 1, {}), 0.7310586);
  near(activate(swiglu_step, 3, 5, {.limit = 2}), 4);
}

// Units in the last place of the larger of result and input.
double error_of(activation_kind kind, float g, float l, const activation_constants& constants) {
  const double truth = reference_activation(kind, g, l, constants);
  const double scale =
      std::max({std::fabs(truth), std::fabs(double{is_gated(kind) ? g : l}), 0x1p-100});
  return std::fabs(double{activate(kind, g, l, constants)} - truth) /
         std::ldexp(1.0, std::ilogb(scale) - 23);
}

TEST(conformance_15_activations, are_within_four_ulp_of_double_over_dense_inputs) {
  for (const activation_kind kind : k_kinds) {
    const activation_constants constants = constants_for(kind);
    double worst = 0;
    float at = 0;
    for (int i = -400'000; i <= 400'000; ++i) {
      const float x = static_cast<float>(i) * 5e-5F;
      const double error = error_of(kind, x, is_gated(kind) ? 1.0F : x, constants);
      if (error > worst) {
        worst = error;
        at = x;
      }
    }
    for (int e = -90; e < 7; ++e) {
      for (const float fraction : {1.0F, 1.37F, 1.99F}) {
        for (const float sign : {-1.0F, 1.0F}) {
          const float x = sign * std::ldexp(fraction, e);
          worst = std::max(worst, error_of(kind, x, is_gated(kind) ? 1.0F : x, constants));
        }
      }
    }
    EXPECT_LE(worst, 4.0) << activation_name(kind) << " at " << at;
    RecordProperty(std::string(activation_name(kind)), std::to_string(worst));
  }
}

TEST(the_activations, keep_small_inputs_to_the_last_places_where_they_are_nearly_linear) {
  for (const float x : {1e-3F, 1e-10F, 1e-30F}) {
    EXPECT_NEAR(activate(situ, 100.0F, x, {.alpha = 1, .beta = 1}) / x, 1.0, 1e-6);
    EXPECT_NEAR(activate(gelu, 0, x, {}) / x, 0.5, 1e-3);
  }
}

TEST(the_activations, pass_nan_and_take_infinities) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  for (const activation_kind kind : k_kinds) {
    EXPECT_TRUE(std::isnan(activate(kind, nan, nan, constants_for(kind)))) << activation_name(kind);
    if (is_gated(kind)) {
      EXPECT_TRUE(std::isnan(activate(kind, nan, 1, constants_for(kind)))) << activation_name(kind);
      EXPECT_TRUE(std::isnan(activate(kind, 1, nan, constants_for(kind)))) << activation_name(kind);
    }
  }
  EXPECT_EQ(activate(gelu, 0, infinity, {}), infinity);
  EXPECT_EQ(activate(situ, infinity, infinity, {.alpha = 3, .beta = 4}), 12.0F);
  EXPECT_EQ(activate(swiglu, infinity, -infinity, {.limit = 2}), 2 * activate(silu, 0, 2, {}) * -1);
}

TEST(the_activations, are_equal_in_bits_in_both_forms) {
  if (!runs_here("cpu_avx2")) GTEST_SKIP() << "cpu_avx2 cannot run on this processor";
  constexpr std::size_t k_count = 4096;
  std::array<float, k_count> g, l, out;
  std::mt19937 random(71);
  for (const activation_kind kind : k_kinds) {
    for (const bool absent : {true, false}) {
      activation_constants constants = constants_for(kind);
      if (absent) constants.limit = 0;
      for (int round = 0; round < 40; ++round) {
        for (std::size_t i = 0; i < k_count; ++i) {
          // All bit patterns in even rounds, the usual range in odd ones.
          const auto bits = static_cast<std::uint32_t>(random());
          const auto more = static_cast<std::uint32_t>(random());
          g[i] = round % 2 == 0 ? std::bit_cast<float>(bits)
                                : static_cast<float>(static_cast<std::int32_t>(bits)) * 0x1p-28F;
          l[i] = round % 2 == 0 ? std::bit_cast<float>(more)
                                : static_cast<float>(static_cast<std::int32_t>(more)) * 0x1p-28F;
        }
        activate_avx2(kind, constants, g.data(), l.data(), k_count, out.data());
        for (std::size_t i = 0; i < k_count; ++i) {
          const float truth = activate(kind, g[i], l[i], constants);
          ASSERT_TRUE(std::bit_cast<std::uint32_t>(truth) == std::bit_cast<std::uint32_t>(out[i]) ||
                      (std::isnan(truth) && std::isnan(out[i])))
              << activation_name(kind) << " of " << g[i] << ", " << l[i] << ": " << truth << " and "
              << out[i];
        }
      }
    }
  }
}

std::string refusal(activation_kind kind, const activation_support& declared,
                    const given_vectors& given, std::size_t experts = 3) {
  std::vector<activation_constants> out(experts);
  const auto made = activation_arguments("cpu_old", kind, declared, given, out);
  return made ? "made" : made.error().text;
}

TEST(activation_arguments, broadcast_a_scalar_and_take_one_value_an_expert) {
  constexpr activation_support k_all{constant_support::per_expert, constant_support::per_expert,
                                     constant_support::per_expert};
  const std::vector<float> alpha{1.5F};
  const std::vector<float> beta{1, 2, 3};
  std::vector<activation_constants> out(3);
  ASSERT_TRUE(activation_arguments("x", swiglu_bias, k_all, {.alpha = alpha, .beta = beta}, out));
  EXPECT_EQ(out[0], (activation_constants{.alpha = 1.5F, .beta = 1}));
  EXPECT_EQ(out[2], (activation_constants{.alpha = 1.5F, .beta = 3}));
}

TEST(activation_arguments, name_owner_constant_and_kind_where_a_value_would_be_ignored) {
  const std::vector<float> limit{7};
  EXPECT_EQ(refusal(swiglu, {}, {.limit = limit}),
            "activation: cpu_old does not execute limit of swiglu");
  EXPECT_EQ(refusal(swiglu, {}, {}), "made");
}

TEST(activation_arguments, take_a_scalar_from_a_vector_only_where_all_are_equal) {
  constexpr activation_support k_scalar{.limit = constant_support::scalar};
  const std::vector<float> equal{7, 7, 7};
  const std::vector<float> unequal{7, 7, 7.0000005F};
  EXPECT_EQ(refusal(swiglu, k_scalar, {.limit = equal}), "made");
  EXPECT_EQ(
      refusal(swiglu, k_scalar, {.limit = unequal}),
      "activation: cpu_old takes one value for all experts, given are different limit of swiglu");
  EXPECT_EQ(refusal(swiglu, k_scalar, {.limit = equal}, 4),
            "activation: 3 values of limit for 4 experts of cpu_old; allowed: 1, 4");
}

TEST(activation_arguments, refuse_what_the_kind_refuses) {
  constexpr activation_support k_all{constant_support::per_expert, constant_support::per_expert,
                                     constant_support::per_expert};
  const std::vector<float> limits{7, -1, 7};
  EXPECT_EQ(refusal(swiglu, k_all, {.limit = limits}),
            "activation: limit of swiglu is -1; it must be above 0");
  EXPECT_EQ(refusal(situ, k_all, {}), "activation: alpha of situ is missing");
}

}  // namespace
}  // namespace moetier::kernels
