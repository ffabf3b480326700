#include <gtest/gtest.h>

#include "kernels/backend.hpp"
#include "tests/kernels/expert_case.hpp"

namespace moetier::kernels {
namespace {

constexpr expert_shape k_small{.hidden_size = 8, .intermediate_size = 4};
constexpr cpu_features k_none{};
constexpr cpu_features k_avx2{.avx2 = true, .fma = true};

std::string refusal(std::string_view force, const expert_shape& shape, const cpu_options& options,
                    const cpu_features& features, reason why) {
  const auto made = make_cpu_backend(force, shape, options, features);
  if (made) return "made";
  EXPECT_EQ(reason_name(made.error().why), reason_name(why));
  return made.error().text;
}

std::string_view identity(std::string_view force, const cpu_features& features) {
  const auto made = make_cpu_backend(force, k_small, {}, features);
  return made ? (*made)->identity() : "refused";
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
            "no backend: cuda is not known; allowed: auto, cpu_avx2, cpu_ref");
  EXPECT_EQ(refusal("", k_small, {.force_isa = "neon"}, k_avx2, reason::backend_unresolved),
            "no backend: instruction set neon is not known; allowed: avx2");
  EXPECT_EQ(refusal("", k_small, {.force_isa = "avx2"}, k_none, reason::backend_unresolved),
            "no backend: instruction set avx2 cannot run here: the processor has neither AVX2 nor "
            "FMA");
}

TEST(make_cpu_backend, refuses_activations_that_it_would_not_execute) {
  expert_shape shape = k_small;
  for (const auto& [kind, name] : {std::pair{activation_kind::geglu, "geglu"},
                                   {activation_kind::gelu, "gelu"},
                                   {activation_kind::relu, "relu"},
                                   {activation_kind::silu, "silu"},
                                   {activation_kind::relu2, "relu2"}}) {
    shape.activation = kind;
    EXPECT_EQ(refusal("", shape, {}, k_avx2, reason::activation_invalid),
              std::string("activation: CPU backends execute swiglu, not ") + name);
  }
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
  EXPECT_EQ(layout("cpu_ref", dtype::bf16), "rows.bf16");
  EXPECT_EQ(layout("cpu_ref", dtype::f16), "rows.f16");
  EXPECT_EQ(layout("cpu_ref", dtype::f32), "rows.f32");
  if (!runs_here("cpu_avx2")) GTEST_SKIP() << "cpu_avx2 cannot run on this processor";
  EXPECT_EQ(layout("cpu_avx2", dtype::bf16), "panel16.bf16");
  EXPECT_EQ(layout("cpu_avx2", dtype::f16), "panel16.f32");
  EXPECT_EQ(layout("cpu_avx2", dtype::f32), "panel16.f32");
}

}  // namespace
}  // namespace moetier::kernels
