#include "kernels/cuda/make_expert_layer.hpp"

#include <algorithm>

#include <gtest/gtest.h>

#include "kernels/candidates/backend_candidate.hpp"
#include "kernels/cuda/built_layers.hpp"

namespace moetier::kernels::cuda {
namespace {

expert_shape shape_of(quant_kind quant) {
  return {.hidden_size = 256, .intermediate_size = 128, .format = {.quant = quant}};
}

std::string refusal(std::string_view identity, quant_kind quant) {
  const auto made = make_expert_layer(identity, shape_of(quant), {});
  return made ? "ok" : made.error().text;
}

TEST(built_layers, are_the_devices_candidates_in_order) {
  EXPECT_TRUE(std::is_sorted(k_built_layers.begin(), k_built_layers.end(),
                             [](const auto& a, const auto& b) { return a.kernel < b.kernel; }));
  for (const built_layer& layer : k_built_layers) {
    quant_kind quant{};
    const auto* candidate = candidate_of("moetier." + std::string(layer.kernel) + ".none", quant);
    ASSERT_NE(candidate, nullptr) << layer.kernel;
    EXPECT_EQ(candidate->device, resolution::device_kind::cuda);
    EXPECT_EQ(candidate->kernel, layer.kernel);
  }
  EXPECT_EQ(operands_of("moetier.cuda.sm90_fp8.fp8_block"), operand_form::fp8);
  EXPECT_EQ(operands_of("moetier.cuda.sm90_bf16.none"), operand_form::bf16);
  EXPECT_EQ(operands_of("moetier.cuda.ref.fp8_block"), operand_form::f32);
}

TEST(making_a_layer, gives_the_readable_one_for_every_format) {
  for (unsigned q = 0; q < k_quant_kinds; ++q) {
    const auto quant = static_cast<quant_kind>(q);
    const std::string identity = "moetier.cuda.ref." + std::string(quant_name(quant));
    const auto made = make_expert_layer(identity, shape_of(quant), {});
    ASSERT_TRUE(made) << made.error().text;
    EXPECT_EQ((*made)->identity(), identity);
    EXPECT_TRUE((*made)->layout_id().starts_with("canonical.")) << (*made)->layout_id();
  }
}

// Another format's layer would compute, and under a name that says otherwise.
TEST(making_a_layer, is_refused_by_an_identity_that_does_not_fit) {
  EXPECT_EQ(refusal("moetier.cuda.sm90_bf16.fp8_block", quant_kind::fp8_block),
            "no backend: cuda.sm90_bf16 computes no fp8_block weights");
  EXPECT_EQ(refusal("moetier.cuda.sm90_fp8.none", quant_kind::none),
            "no backend: cuda.sm90_fp8 computes no none weights");
  EXPECT_EQ(refusal("moetier.cuda.ref.none", quant_kind::mxfp4),
            "no backend: moetier.cuda.ref.none computes none weights, not mxfp4");
  EXPECT_EQ(refusal("moetier.cpu.ref.none", quant_kind::none),
            "no backend: this build has no moetier.cpu.ref.none");
  EXPECT_EQ(refusal("cuda\n", quant_kind::none), "no backend: this build has no cuda?");
}

}  // namespace
}  // namespace moetier::kernels::cuda
