#include "kernels/candidates/make_backend.hpp"

#include <gtest/gtest.h>

#include "kernels/candidates/backend_candidate.hpp"

namespace moetier::kernels {
namespace {

constexpr cpu_features k_all{.avx2 = true, .fma = true, .avx512f = false, .f16c = true};

expected<std::unique_ptr<Backend>> made(std::string_view identity,
                                        quant_kind quant = quant_kind::none,
                                        const cpu_features& features = k_all) {
  return make_backend(identity,
                      {.hidden_size = 128, .intermediate_size = 128, .format = {.quant = quant}},
                      {}, features);
}

std::string refusal(std::string_view identity, quant_kind quant = quant_kind::none,
                    const cpu_features& features = k_all) {
  const auto backend = made(identity, quant, features);
  return backend ? "ok" : backend.error().text;
}

// What a candidate declares, its Backend says too.
TEST(made_backends, are_what_their_identity_and_candidate_say) {
  for (unsigned q = 0; q < k_quant_kinds; ++q) {
    const auto quant = static_cast<quant_kind>(q);
    for (const backend_candidate& c : backend_candidates()) {
      if (c.family != backend_family::cpu && c.family != backend_family::reference) continue;
      if (!holds(c.quants, quant)) continue;
      const std::string identity = identity_of(c, quant);
      const auto backend = made(identity, quant);
      ASSERT_TRUE(backend) << identity << ": " << backend.error().text;
      EXPECT_EQ((*backend)->identity(), identity);
      EXPECT_EQ((*backend)->row_invariant(), c.bits.row_invariant) << identity;
    }
  }
}

TEST(made_backends, are_refused_by_an_identity_that_does_not_fit) {
  EXPECT_EQ(refusal("moetier.cpu.avx2.mxfp4"),
            "no backend: moetier.cpu.avx2.mxfp4 computes mxfp4 weights, not none");
  EXPECT_EQ(refusal("cpu_avx2"), "no backend: cpu_avx2 is not known");
  EXPECT_EQ(refusal(""), "no backend:  is not known");
  EXPECT_EQ(refusal("moetier.cuda.sm90_bf16.none"), "no backend: this build has no cuda.sm90_bf16");
  EXPECT_EQ(refusal("moetier.cpu.fused_lockstep.none"),
            "no backend: this build has no cpu.fused_lockstep");
  EXPECT_EQ(refusal("moetier.cpu.avx2.none", quant_kind::none, {}),
            "no backend: cpu_avx2 cannot run here: the processor has neither AVX2 nor FMA");
}

}  // namespace
}  // namespace moetier::kernels
