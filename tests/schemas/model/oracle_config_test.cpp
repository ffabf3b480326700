// What every family's config.json means, against a table that was written by the makers of the
// checkpoints and not by this loader.

#include <algorithm>
#include <fstream>
#include <random>
#include <sstream>

#include <gtest/gtest.h>

#include "schemas/model/config.hpp"

namespace moetier {
namespace {

using enum routing_method;

struct row {
  const char* folder;
  routing_method method;
  std::vector<std::uint16_t> layers;
  std::uint32_t hidden, inner, experts, top_k;
  std::uint32_t groups = 1, kept = 1;
  float scaling = 1.0F;
  float limit = 0.0F;  // of the first MoE layer; 0 = none
  quant_kind quant = quant_kind::none;
  std::uint32_t shared = 0;  // intermediate size of all together
};

const std::vector<row> k_rows{
    {"bailing_hybrid", deepseek_v3, {1, 2}, 64, 32, 12, 4, 4, 2, 2.5F, 0, {}, 32},
    {"dbrx", softmax_pnorm, {0, 1}, 64, 32, 12, 4},
    {"deepseek_v2", deepseek_v2, {1, 2}, 64, 48, 16, 4, 4, 2, 16.0F, 0, {}, 48},
    {"deepseek_v3", deepseek_v3, {1, 2}, 64, 48, 16, 4, 4, 2, 2.5F, 0, {}, 48},
    {"deepseek_v32", deepseek_v3, {1, 2}, 64, 32, 12, 4, 4, 2, 2.5F, 0, {}, 32},
    {"deepseek_v3_fp8_block",
     deepseek_v3,
     {1},
     256,
     128,
     4,
     2,
     1,
     1,
     2.5F,
     0,
     quant_kind::fp8_block,
     128},
    {"deepseek_v3_neg", deepseek_v3, {1, 2}, 64, 32, 12, 4, 4, 2, 2.5F, 0, {}, 32},
    {"deepseek_v3_nvfp4", deepseek_v3, {1, 2}, 128, 64, 8, 3, 4, 2, 2.5F, 0, quant_kind::nvfp4, 64},
    {"deepseek_v4", deepseek_v4, {0, 1}, 64, 32, 12, 4, 1, 1, 1.5F, 2.0F, {}, 32},
    {"deepseek_v4_fp4",
     deepseek_v4,
     {0, 1},
     256,
     128,
     4,
     2,
     1,
     1,
     1.5F,
     2.0F,
     quant_kind::mxfp4,
     128},
    {"dots1", deepseek_v3, {1, 2}, 64, 32, 12, 4, 1, 1, 2.5F, 0, {}, 64},
    {"ernie4_5_moe", softmax_bias, {1, 2}, 64, 32, 12, 4, 1, 1, 1.0F, 0, {}, 64},
    {"gemma4", renormalize, {0, 1}, 64, 32, 12, 4},
    {"glm4_moe", deepseek_v3, {1}, 64, 48, 16, 4, 1, 1, 1.5F, 0, {}, 48},
    {"glm5_next", deepseek_v3, {1, 2}, 64, 32, 12, 4, 1, 1, 2.5F, 2.0F, {}, 32},
    {"glm_moe_dsa", deepseek_v3, {1, 2}, 64, 32, 12, 4, 1, 1, 2.5F, 0, {}, 32},
    {"gpt_oss", renormalize, {0, 1}, 64, 48, 8, 2, 1, 1, 1.0F, 7.0F},
    {"gpt_oss_mxfp4", renormalize, {0, 1}, 128, 64, 8, 4, 1, 1, 1.0F, 7.0F, quant_kind::mxfp4},
    {"granitemoe", renormalize, {0, 1}, 64, 32, 12, 4},
    {"hunyuan_v1_moe", renormalize_naive, {0, 1}, 64, 32, 8, 3, 1, 1, 1.0F, 0, {}, 32},
    {"hy_v3", deepseek_v3, {1, 2}, 64, 32, 12, 4, 1, 1, 2.826F, 0, {}, 32},
    {"jamba", default_softmax, {1, 3}, 64, 32, 8, 2},
    {"kimi_linear", deepseek_v3, {1, 2}, 64, 32, 12, 4, 1, 1, 2.446F, 0, {}, 32},
    {"lfm2_moe", deepseek_v3, {1, 2}, 64, 32, 12, 4},
    {"llama4_text", llama4, {0, 1}, 64, 48, 4, 1, 1, 1, 1.0F, 0, {}, 48},
    {"longcat_flash", softmax_bias_raw, {0, 1}, 64, 32, 12, 4, 1, 1, 6.0F},
    {"mimo_v2_flash", deepseek_v3, {1, 2}, 64, 32, 12, 4},
    {"minimax", renormalize, {0, 1}, 64, 48, 8, 2},
    {"minimax_m2", minimax2, {0, 1}, 64, 48, 16, 4},
    {"minimax_m3_vl", minimax2, {1, 2}, 64, 32, 12, 4, 1, 1, 2.0F, 2.5F, {}, 32},
    {"mistral4", softmax_group, {0, 1}, 64, 32, 12, 4, 1, 1, 1.0F, 0, {}, 32},
    {"mistral_large4", softmax_group, {1, 2}, 64, 32, 12, 4, 1, 1, 1.0F, 0, {}, 32},
    {"mixtral", renormalize, {0, 1}, 64, 96, 8, 2},
    {"nemotron_h", deepseek_v3, {1, 3}, 64, 48, 12, 4, 1, 1, 2.5F, 0, {}, 40},
    {"nemotron_h_latent", deepseek_v3, {1, 3}, 32, 48, 12, 4, 1, 1, 2.5F, 0, {}, 40},
    {"olmoe", default_softmax, {0, 1}, 64, 48, 16, 8},
    {"phimoe", sparse_mixer, {0, 1}, 64, 32, 12, 2},
    {"qwen2_moe", default_softmax, {0, 1}, 64, 48, 16, 4, 1, 1, 1.0F, 0, {}, 80},
    {"qwen3_5_moe", renormalize_naive, {0, 1}, 64, 32, 12, 4, 1, 1, 1.0F, 0, {}, 48},
    {"qwen3_moe", renormalize_naive, {0, 1}, 64, 48, 16, 4},
    {"qwen3_moe_fp8_ct",
     renormalize_naive,
     {0, 1},
     128,
     64,
     8,
     3,
     1,
     1,
     1.0F,
     0,
     quant_kind::fp8_tensor},
    {"qwen3_moe_fp8_modelopt",
     renormalize_naive,
     {0, 1},
     128,
     64,
     8,
     3,
     1,
     1,
     1.0F,
     0,
     quant_kind::fp8_tensor},
    {"qwen3_moe_int4_g128",
     renormalize_naive,
     {0},
     256,
     128,
     8,
     3,
     1,
     1,
     1.0F,
     0,
     quant_kind::int4_g128},
    {"qwen3_moe_nonorm", default_softmax, {0, 1}, 64, 48, 16, 4},
    {"qwen3_next", renormalize_naive, {0, 1}, 64, 32, 12, 4, 1, 1, 1.0F, 0, {}, 48},
    {"qwen4_exp", renormalize_naive, {0, 1}, 64, 32, 12, 5, 1, 1, 1.0F, 0, {}, 48},
    {"step3p7", minimax2, {1, 2}, 64, 32, 12, 4, 1, 1, 3.0F, 0, {}, 48}};

class oracle_config_test : public testing::TestWithParam<row> {
 protected:
  static model_description described(const std::string& folder) {
    auto model = read_config(std::string(MOETIER_SOURCE_DIR) + "/tests/data/oracles/" + folder +
                             "/config.json");
    EXPECT_TRUE(model) << model.error().text;
    return model.value_or(model_description());
  }
};

TEST_P(oracle_config_test, says_what_the_makers_table_says) {
  const row& wanted = GetParam();
  const model_description model = described(wanted.folder);
  EXPECT_EQ(routing_method_name(model.routing.method), routing_method_name(wanted.method));
  EXPECT_TRUE(model.routing.renormalise || wanted.method == default_softmax ||
              wanted.method == deepseek_v2);
  std::vector<std::uint16_t> layers;
  for (const layer_id layer : model.moe_layers) layers.push_back(layer.value);
  EXPECT_EQ(layers, wanted.layers);
  EXPECT_EQ(model.hidden_size, wanted.hidden);
  EXPECT_EQ(model.intermediate_size, wanted.inner);
  EXPECT_EQ(model.experts, wanted.experts);
  EXPECT_EQ(model.top_k, wanted.top_k);
  EXPECT_EQ(model.routing.groups, wanted.groups);
  EXPECT_EQ(model.routing.groups_kept, wanted.kept);
  EXPECT_EQ(model.routing.scaling, wanted.scaling);
  EXPECT_EQ(constants_of(model, 0, false).limit, wanted.limit);
  EXPECT_EQ(quant_name(model.format.quant), quant_name(wanted.quant));
  EXPECT_EQ(model.shared.intermediate_size, wanted.shared);
  EXPECT_EQ(model.fingerprint, fingerprint_of(model));
}

// Bytes changed at random: a description whose numbers fit together, or a typed error.
TEST_P(oracle_config_test, any_bytes_are_a_description_or_a_typed_error) {
  std::ostringstream all;
  all << std::ifstream(std::string(MOETIER_SOURCE_DIR) + "/tests/data/oracles/" +
                       GetParam().folder + "/config.json")
             .rdbuf();
  const std::string good = all.str();
  int taken = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    std::mt19937_64 random(seed);
    std::string text = good;
    for (std::uint64_t edits = 1 + random() % 3; edits > 0; --edits)
      text[random() % text.size()] =
          static_cast<char>(random() % 2 == 0 ? '0' + random() % 10 : random());
    const auto reading = parse_config_and_form(text, "c");
    if (!reading) {
      ASSERT_NE(reading.error().code, status::internal) << "seed " << seed;
      continue;
    }
    ++taken;
    const model_description& m = reading->model;
    ASSERT_LE(m.top_k, m.experts) << "seed " << seed;
    ASSERT_TRUE(std::ranges::is_sorted(m.moe_layers)) << "seed " << seed;
    ASSERT_FALSE(m.moe_layers.empty()) << "seed " << seed;
    ASSERT_LT(m.moe_layers.back().value, m.layers_total) << "seed " << seed;
    ASSERT_EQ(m.experts % m.routing.groups, 0u) << "seed " << seed;
    ASSERT_TRUE(m.limits.empty() || m.limits.size() == m.moe_layers.size()) << "seed " << seed;
    ASSERT_TRUE(fits_groups(m.format.quant, m.hidden_size)) << "seed " << seed;
    ASSERT_LE(m.experts + m.shared.count, 4096u + 256u) << "seed " << seed;
  }
  EXPECT_GT(taken, 0) << "nothing was tried";
}

INSTANTIATE_TEST_SUITE_P(families, oracle_config_test, testing::ValuesIn(k_rows),
                         [](const auto& one) { return std::string(one.param.folder); });

class family_detail_test : public oracle_config_test {};

TEST_F(family_detail_test, activations_and_their_constants) {
  const auto rule = [](const char* folder) { return described(folder).activation; };
  EXPECT_EQ(rule("gpt_oss"), (activation_rule{activation_kind::swiglu_bias, {1.702F, 1.0F, 7.0F}}));
  EXPECT_EQ(rule("minimax_m3_vl"),
            (activation_rule{activation_kind::swiglu_bias, {1.702F, 1.0F, 2.5F}}));
  EXPECT_EQ(rule("glm5_next"), (activation_rule{activation_kind::swiglu, {0, 0, 2.0F}}));
  EXPECT_EQ(rule("nemotron_h").kind, activation_kind::relu2);
  EXPECT_EQ(rule("gemma4").kind, activation_kind::geglu_tanh);
  EXPECT_EQ(rule("dbrx"), activation_rule());
  const model_description step = described("step3p7");
  EXPECT_EQ(step.activation.kind, activation_kind::swiglu_step);
  EXPECT_EQ(step.limits, (std::vector<float>{0.0F, 1.0F}));
  EXPECT_EQ(step.shared_limits, (std::vector<float>{1.25F, 0.0F}));
}

TEST_F(family_detail_test, what_only_one_family_has) {
  EXPECT_EQ(described("phimoe").routing.epsilon, 0.25F);
  EXPECT_EQ(described("lfm2_moe").routing.epsilon, 1e-6F);
  EXPECT_EQ(described("ernie4_5_moe").routing.epsilon, 1e-12F);
  EXPECT_EQ(described("dbrx").routing.power, 1.0F);
  EXPECT_EQ(described("longcat_flash").columns(), 18u);
  EXPECT_TRUE(described("gpt_oss").expert_bias);
  EXPECT_EQ(described("llama4_text").weight_at, weight_point::input);
  EXPECT_FALSE(described("gemma4").router_reads_hidden);
  EXPECT_EQ(described("nemotron_h_latent").router_width, 64u);
  EXPECT_TRUE(described("qwen2_moe").shared.gated);
  EXPECT_EQ(described("qwen2_moe").shared.count, 2u) << "80 of 48 each";
  EXPECT_EQ(described("dots1").shared.count, 2u);
  EXPECT_EQ(described("nemotron_h_latent").shared.count, 0u) << "another width";
  EXPECT_EQ(described("deepseek_v4_fp4").shared.count, 0u) << "another format";
}

}  // namespace
}  // namespace moetier
