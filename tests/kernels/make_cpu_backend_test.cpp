#include <gtest/gtest.h>

#include "kernels/backend.hpp"
#include "kernels/cpu_capabilities.hpp"
#include "tests/kernels/expert_case.hpp"

namespace moetier::kernels {
namespace {

constexpr expert_shape k_small{.hidden_size = 8, .intermediate_size = 4};
constexpr cpu_features k_none{};
constexpr cpu_features k_avx2{.avx2 = true, .fma = true, .f16c = true};

std::string refusal(std::string_view force, const expert_shape& shape, const cpu_options& options,
                    const cpu_features& features, reason why) {
  const auto made = make_cpu_backend(force, shape, options, features);
  if (made) return "made";
  EXPECT_EQ(reason_name(made.error().why), reason_name(why));
  return made.error().text;
}

std::string identity(std::string_view force, const cpu_features& features) {
  const auto made = make_cpu_backend(force, k_small, {}, features);
  return made ? std::string((*made)->identity()) : "refused";
}

TEST(make_cpu_backend, picks_the_widest_backend_that_the_features_allow) {
  for (const std::string_view any : {"", "auto"}) {
    EXPECT_EQ(identity(any, k_avx2), "moetier.cpu.avx2.none");
    EXPECT_EQ(identity(any, k_none), "moetier.cpu.ref.none");
    EXPECT_EQ(identity(any, {.avx2 = true}), "moetier.cpu.ref.none");
  }
}

TEST(make_cpu_backend, makes_the_named_backend_and_no_other) {
  EXPECT_EQ(identity("cpu_ref", k_avx2), "moetier.cpu.ref.none");
  EXPECT_EQ(identity("cpu_avx2", k_avx2), "moetier.cpu.avx2.none");
}

TEST(make_cpu_backend, names_what_a_forced_backend_lacks) {
  EXPECT_EQ(refusal("cpu_avx2", k_small, {}, k_none, reason::backend_unresolved),
            "no backend: cpu_avx2 cannot run here: the processor has neither AVX2 nor FMA");
  EXPECT_EQ(refusal("cpu_avx2", k_small, {}, {.avx2 = true}, reason::backend_unresolved),
            "no backend: cpu_avx2 cannot run here: the processor has no FMA");
  EXPECT_EQ(refusal("cpu_avx2", k_small, {}, {.fma = true}, reason::backend_unresolved),
            "no backend: cpu_avx2 cannot run here: the processor has no AVX2");
}

TEST(make_cpu_backend, names_what_is_allowed_for_an_unknown_backend_or_instruction_set) {
  EXPECT_EQ(refusal("cuda", k_small, {}, k_avx2, reason::backend_unresolved),
            "no backend: cuda is not known; allowed: auto, cpu_avx2, cpu_ref, reference");
  EXPECT_EQ(refusal("", k_small, {.force_isa = "neon"}, k_avx2, reason::backend_unresolved),
            "no backend: instruction set neon is not known; allowed: avx2");
  EXPECT_EQ(refusal("", k_small, {.force_isa = "avx2"}, k_none, reason::backend_unresolved),
            "no backend: instruction set avx2 cannot run here: the processor has neither AVX2 nor "
            "FMA");
}

TEST(make_cpu_backend, makes_every_format_and_activation_that_it_declares) {
  for (const auto* can :
       {&k_cpu_avx2_capabilities, &k_cpu_ref_capabilities, &k_reference_capabilities}) {
    if (!runs_here(can->name)) continue;
    for (unsigned quant = 0; quant < k_quant_kinds; ++quant) {
      for (unsigned kind = 0; kind < k_activation_kinds; ++kind) {
        for (const bool bias : {false, true}) {
          const expert_shape shape{.hidden_size = 128,
                                   .intermediate_size = 128,
                                   .format = {.quant = static_cast<quant_kind>(quant)},
                                   .activation = static_cast<activation_kind>(kind),
                                   .bias = bias};
          const auto made = backend_of(can->name, shape);
          ASSERT_NE(made, nullptr) << can->name << " " << quant << " " << kind;
          EXPECT_EQ(made->identity(), std::string(can->identity_prefix) +
                                          std::string(quant_name(shape.format.quant)));
          EXPECT_EQ(made->row_invariant(), can->row_invariant);
          EXPECT_EQ(made->supports_lora(), can->executes_lora(shape.format.quant));
        }
      }
    }
  }
}

TEST(make_cpu_backend, falls_back_for_quantised_weights_where_f16c_lacks) {
  const cpu_features features{.avx2 = true, .fma = true};
  expert_shape shape{.hidden_size = 128, .intermediate_size = 128};
  EXPECT_EQ((*make_cpu_backend("", shape, {}, features))->identity(), "moetier.cpu.avx2.none");
  shape.format.quant = quant_kind::mxfp4;
  EXPECT_EQ((*make_cpu_backend("", shape, {}, features))->identity(), "moetier.cpu.ref.mxfp4");
  EXPECT_EQ(refusal("cpu_avx2", shape, {}, features, reason::backend_unresolved),
            "no backend: cpu_avx2 cannot run here: the processor has no F16C for mxfp4 weights");
}

TEST(make_cpu_backend, refuses_sizes_that_split_a_group_of_scales) {
  const auto refused = [](quant_kind quant, std::uint32_t hidden, std::uint32_t units) {
    return refusal("",
                   {.hidden_size = hidden, .intermediate_size = units, .format = {.quant = quant}},
                   {}, k_avx2, reason::invalid_argument);
  };
  EXPECT_EQ(refused(quant_kind::mxfp8, 48, 32),
            "hidden_size of mxfp8 is 48; allowed: multiples of 32");
  EXPECT_EQ(refused(quant_kind::mxfp4, 32, 48),
            "intermediate_size of mxfp4 is 48; allowed: multiples of 32");
  EXPECT_EQ(refused(quant_kind::nvfp4, 24, 32),
            "hidden_size of nvfp4 is 24; allowed: multiples of 16");
  EXPECT_EQ(refused(quant_kind::int4_g128, 128, 64),
            "intermediate_size of int4_g128 is 64; allowed: multiples of 128");
  EXPECT_EQ(refused(quant_kind::fp8_block, 100, 7), "made");
  EXPECT_EQ(refused(quant_kind::fp8_tensor, 3, 1), "made");
}

TEST(make_cpu_backend, refuses_formats_and_activations_out_of_range) {
  expert_shape shape = k_small;
  shape.activation = static_cast<activation_kind>(k_activation_kinds);
  EXPECT_EQ(refusal("", shape, {}, k_avx2, reason::activation_invalid),
            "activation: kind 10 is not known");
  shape = k_small;
  shape.format.quant = static_cast<quant_kind>(k_quant_kinds);
  EXPECT_EQ(refusal("", shape, {}, k_avx2, reason::backend_unresolved),
            "no backend: weight format 7 is not known");
}

TEST(make_cpu_backend, refuses_shapes_types_and_threads_beyond_their_bounds) {
  EXPECT_EQ(
      refusal("", {.hidden_size = 0, .intermediate_size = 4}, {}, k_avx2, reason::invalid_argument),
      "hidden_size is 0; allowed: 1 to 65536");
  EXPECT_EQ(refusal("", {.hidden_size = 65537, .intermediate_size = 4}, {}, k_avx2,
                    reason::invalid_argument),
            "hidden_size is 65537; allowed: 1 to 65536");
  EXPECT_EQ(refusal("", {.hidden_size = 4, .intermediate_size = 262145}, {}, k_avx2,
                    reason::invalid_argument),
            "intermediate_size is 262145; allowed: 1 to 262144");
  EXPECT_EQ(refusal("", {.hidden_size = 4, .intermediate_size = 4, .format = {.stored = dtype::u8}},
                    {}, k_avx2, reason::invalid_dtype),
            "expert weights has dtype u8; allowed: bf16, f16, f32");
  EXPECT_EQ(refusal("", k_small, {.threads = 0}, k_avx2, reason::invalid_argument),
            "compute threads is 0; allowed: 1 to 256");
  EXPECT_EQ(refusal("", k_small, {.threads = 257}, k_avx2, reason::invalid_argument),
            "compute threads is 257; allowed: 1 to 256");
  EXPECT_TRUE(make_cpu_backend("", {.hidden_size = 65536, .intermediate_size = 262144},
                               {.threads = 2}, k_avx2));
}

TEST(make_cpu_backend, gives_each_page_layout_its_own_name) {
  const auto layout = [](std::string_view name, dtype stored) {
    return std::string(
        backend_of(name, {.hidden_size = 8, .intermediate_size = 4, .format = {.stored = stored}})
            ->layout_id());
  };
  EXPECT_EQ(layout("cpu_ref", dtype::bf16), "canonical.bf16");
  EXPECT_EQ(layout("cpu_ref", dtype::f16), "canonical.f16");
  EXPECT_EQ(layout("reference", dtype::f32), "canonical.f32");
  const expert_shape unusual{.hidden_size = 128,
                             .intermediate_size = 128,
                             .format = {.quant = quant_kind::fp8_block},
                             .activation = activation_kind::relu2,
                             .bias = true};
  EXPECT_EQ(backend_of("cpu_ref", unusual)->layout_id(), "canonical.fp8_block.ungated.bias");
  if (!runs_here("cpu_avx2")) GTEST_SKIP() << "cpu_avx2 cannot run on this processor";
  EXPECT_EQ(layout("cpu_avx2", dtype::bf16), "panels16.bf16");
  EXPECT_EQ(layout("cpu_avx2", dtype::f16), "panels16.f32");
  EXPECT_EQ(layout("cpu_avx2", dtype::f32), "panels16.f32");
  EXPECT_EQ(backend_of("cpu_avx2", unusual)->layout_id(), "panels16.fp8_block.ungated.bias");
}

}  // namespace
}  // namespace moetier::kernels
