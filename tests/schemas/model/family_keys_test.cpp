// What keys of single families mean, what their absence means, and which values are refused: on the
// oracles' configurations, one key changed at a time.

#include <fstream>
#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "schemas/model/config.hpp"

namespace moetier {
namespace {

using json = nlohmann::json;

json oracle(const std::string& folder) {
  std::ostringstream text;
  text << std::ifstream(std::string(MOETIER_SOURCE_DIR) + "/tests/data/oracles/" + folder +
                        "/config.json")
              .rdbuf();
  return json::parse(text.str());
}

expected<model_description> parse(const json& config) {
  return parse_config(config.dump(), "config.json");
}

// The configuration with one key (dots reach inside) set, or erased where the value is discarded.
model_description with(const std::string& folder, const std::string& key, const json& value) {
  json config = oracle(folder);
  config[json::json_pointer("/" + key)] = value;
  auto model = parse(config);
  EXPECT_TRUE(model) << model.error().text;
  return model.value_or(model_description());
}

std::string refusal(const std::string& folder, const std::string& key, const json& value) {
  json config = oracle(folder);
  config[json::json_pointer("/" + key)] = value;
  const auto model = parse(config);
  return model ? "ok" : model.error().text;
}

std::string refusal_without(const std::string& folder, const std::string& key) {
  json config = oracle(folder);
  config.erase(key);
  const auto model = parse(config);
  return model ? "ok" : model.error().text;
}

model_description without(const std::string& folder, const std::string& key) {
  json config = oracle(folder);
  config.erase(key);
  auto model = parse(config);
  EXPECT_TRUE(model) << model.error().text;
  return model.value_or(model_description());
}

std::vector<std::uint16_t> layers(const model_description& model) {
  std::vector<std::uint16_t> numbers;
  for (const layer_id layer : model.moe_layers) numbers.push_back(layer.value);
  return numbers;
}

using numbers = std::vector<std::uint16_t>;

TEST(family_keys, norm_defaults_differ_by_family) {
  EXPECT_TRUE(without("deepseek_v3", "norm_topk_prob").routing.renormalise);
  EXPECT_FALSE(without("dots1", "norm_topk_prob").routing.renormalise);
  EXPECT_EQ(without("qwen2_moe", "norm_topk_prob").routing.method, routing_method::default_softmax);
  EXPECT_EQ(refusal_without("qwen3_next", "norm_topk_prob"),
            "model field norm_topk_prob is missing; supported: true or false");
  EXPECT_FALSE(with("kimi_linear", "moe_renormalize", false).routing.renormalise);
  EXPECT_FALSE(with("mistral4", "norm_topk_prob", false).routing.renormalise);
  EXPECT_FALSE(with("lfm2_moe", "norm_topk_prob", false).routing.renormalise);
  EXPECT_TRUE(with("deepseek_v4", "norm_topk_prob", false).routing.renormalise)
      << "normalised whatever it says";
  EXPECT_EQ(with("qwen4_exp", "text_config/norm_topk_prob", false).routing.method,
            routing_method::default_softmax);
  EXPECT_EQ(refusal("deepseek_v2", "norm_topk_prob", true),
            "model field norm_topk_prob is true; supported: false, as implementations differ on "
            "the factor");
  EXPECT_EQ(refusal("hy_v3", "route_norm", false),
            "model field route_norm is false; supported: true");
}

TEST(family_keys, factors_must_stand_but_where_null_means_one) {
  EXPECT_EQ(refusal_without("deepseek_v3", "routed_scaling_factor"),
            "model field routed_scaling_factor is missing; supported: a finite number");
  EXPECT_EQ(with("mimo_v2_flash", "routed_scaling_factor", nullptr).routing.scaling, 1.0F);
  EXPECT_EQ(with("mimo_v2_flash", "routed_scaling_factor", 2.0).routing.scaling, 2.0F);
  EXPECT_EQ(refusal("hy_v3", "router_scaling_factor", 1e300),
            "model field router_scaling_factor is 1e+300; supported: a finite number");
}

TEST(family_keys, methods_and_scores_of_other_kinds_are_refused) {
  EXPECT_EQ(refusal("deepseek_v32", "scoring_func", "softmax"),
            "model field scoring_func is \"softmax\"; supported: sigmoid");
  EXPECT_EQ(refusal("bailing_hybrid", "score_function", "softmax"),
            "model field score_function is \"softmax\"; supported: sigmoid");
  EXPECT_EQ(refusal("kimi_linear", "moe_router_activation_func", "softmax"),
            "model field moe_router_activation_func is \"softmax\"; supported: sigmoid");
  EXPECT_EQ(refusal("deepseek_v4", "scoring_func", "sigmoid"),
            "model field scoring_func is \"sigmoid\"; supported: sqrtsoftplus");
  EXPECT_EQ(refusal("deepseek_v32", "topk_method", "greedy"),
            "model field topk_method is \"greedy\"; supported: noaux_tc");
  EXPECT_EQ(refusal("deepseek_v2", "topk_method", "noaux_tc"),
            "model field topk_method is \"noaux_tc\"; supported: greedy, group_limited_greedy");
  EXPECT_EQ(refusal_without("deepseek_v2", "topk_method"),
            "model field topk_method is missing; supported: greedy, group_limited_greedy");
  EXPECT_EQ(with("deepseek_v2", "topk_method", "greedy").routing.groups, 1u);
  EXPECT_EQ(refusal("longcat_flash", "zero_expert_type", "copy"),
            "model field zero_expert_type is \"copy\"; supported: \"identity\"");
  EXPECT_EQ(refusal("llama4_text", "num_experts_per_tok", 2),
            "model field num_experts_per_tok is 2; supported: 1 to 1");
}

TEST(family_keys, the_familys_own_key_counts_and_every_other_must_agree) {
  struct own_key {
    const char* folder;
    const char* path;
    const char* key;
    int top_k;
  };
  for (const auto& [folder, path, key, top_k] :
       {own_key{"hunyuan_v1_moe", "", "moe_topk", 3}, own_key{"longcat_flash", "", "moe_topk", 4},
        own_key{"ernie4_5_moe", "", "moe_k", 4}, own_key{"dbrx", "", "ffn_config.moe_top_k", 4},
        own_key{"gemma4", "text_config/", "top_k_experts", 4},
        own_key{"kimi_linear", "", "num_experts_per_token", 4}}) {
    const std::string prefix = *path == '\0' ? "" : "text_config.";
    EXPECT_EQ(refusal(folder, std::string(path) + "num_experts_per_tok", 1),
              "model field " + prefix + "num_experts_per_tok is 1; supported: " +
                  std::to_string(top_k) + " as " + prefix + key + " says");
    EXPECT_EQ(with(folder, std::string(path) + "num_experts_per_tok", top_k).top_k,
              static_cast<std::uint32_t>(top_k));
  }
  EXPECT_EQ(refusal("dbrx", "num_experts", 8),
            "model field num_experts is 8; supported: 12 as ffn_config.moe_num_experts says");
}

TEST(family_keys, a_missing_count_is_named_by_the_familys_own_key) {
  EXPECT_EQ(refusal_without("deepseek_v3", "n_routed_experts"),
            "model field n_routed_experts is missing; supported: the number of experts");
  EXPECT_EQ(refusal_without("mixtral", "num_local_experts"),
            "model field num_local_experts is missing; supported: the number of experts");
  EXPECT_EQ(refusal("dbrx", "ffn_config/moe_top_k", nullptr),
            "model field ffn_config.moe_top_k is missing; supported: 1 to 12");
  EXPECT_EQ(refusal_without("ernie4_5_moe", "moe_k"),
            "model field moe_k is missing; supported: 1 to 12");
  EXPECT_EQ(refusal_without("kimi_linear", "num_expert_group"),
            "model field num_expert_group is missing; supported: the number of groups");
}

TEST(family_keys, groups_must_divide_the_experts) {
  EXPECT_EQ(refusal("deepseek_v3", "n_group", 5),
            "model field n_group is 5; supported: a divisor of the 16 experts");
  EXPECT_EQ(refusal("deepseek_v3", "topk_group", 5),
            "model field topk_group is 5; supported: 1 to 4");
  EXPECT_EQ(refusal("deepseek_v3", "num_expert_group", 8),
            "model field num_expert_group is 8; supported: 4 as n_group says");
  EXPECT_EQ(refusal_without("deepseek_v3", "n_group"),
            "model field n_group is missing; supported: the number of groups");
}

TEST(family_keys, parameters_without_sense_are_refused_by_key) {
  EXPECT_EQ(refusal("deepseek_v3", "routed_scaling_factor", 0.0),
            "model field routed_scaling_factor is 0; supported: a finite number above 0");
  EXPECT_EQ(refusal("phimoe", "router_jitter_noise", 0.0),
            "model field router_jitter_noise is 0; supported: a finite number above 0");
  EXPECT_EQ(refusal("deepseek_v3", "topk_group", 0),
            "model field topk_group is 0; supported: 1 to 4");
  json few = oracle("deepseek_v3");
  few["topk_group"] = 1;
  few["num_experts_per_tok"] = 5;
  EXPECT_EQ(parse(few).error().text,
            "model field topk_group is 1; supported: groups with at least 5 experts; these have 4");
}

TEST(family_keys, mixers_take_two_and_pnorm_may_be_null) {
  EXPECT_EQ(with("phimoe", "num_experts_per_tok", 4).top_k, 2u);
  EXPECT_EQ(refusal_without("phimoe", "router_jitter_noise"),
            "model field router_jitter_noise is missing; supported: a finite number");
  EXPECT_EQ(with("dbrx", "ffn_config/moe_normalize_expert_weights", nullptr).routing.method,
            routing_method::default_softmax);
  EXPECT_EQ(with("dbrx", "ffn_config/moe_normalize_expert_weights", 2.0).routing.power, 2.0F);
  json plain = oracle("dbrx");
  plain["ffn_config"].erase("moe_normalize_expert_weights");
  EXPECT_EQ(parse(plain)->routing, parse(oracle("dbrx"))->routing) << "absent means 1";
}

TEST(family_keys, shared_experts_are_bounded) {
  EXPECT_EQ(with("deepseek_v3", "n_shared_experts", 256).shared.count, 256u);
  EXPECT_EQ(refusal("deepseek_v3", "n_shared_experts", 257),
            "model field n_shared_experts is 257; supported: 0 to 256");
  EXPECT_EQ(refusal("qwen2_moe", "shared_expert_intermediate_size", 48 * 256 + 1),
            "model field shared_expert_intermediate_size is 12289; supported: 0 to 12288");
  EXPECT_EQ(with("deepseek_v3", "n_shared_experts", nullptr).shared, shared_experts_rule());
  EXPECT_EQ(without("hunyuan_v1_moe", "num_shared_expert").shared.count, 1u);
  EXPECT_EQ(without("deepseek_v4", "n_shared_experts").shared.count, 1u);
}

TEST(family_keys, lists_by_layer_must_repeat_one_number) {
  EXPECT_EQ(with("hunyuan_v1_moe", "moe_topk", {3, 3}).top_k, 3u);
  EXPECT_EQ(with("hunyuan_v1_moe", "num_experts", {8, 8}).experts, 8u);
  EXPECT_EQ(refusal("hunyuan_v1_moe", "moe_topk", {3, 2}),
            "model field moe_topk is a list of different values; supported: one number, or a list "
            "that repeats it");
}

TEST(family_keys, moe_layers_by_every_rule) {
  EXPECT_EQ(layers(with("deepseek_v3", "first_k_dense_replace", 2)), (numbers{2}));
  EXPECT_EQ(layers(with("deepseek_v3", "moe_layer_freq", 2)), (numbers{2}));
  EXPECT_EQ(layers(with("deepseek_v3", "moe_layer_freq", {1, 0, 1, 1})), (numbers{0, 2}));
  EXPECT_EQ(layers(with("deepseek_v32", "mlp_layer_types", {"dense", "dense", "sparse"})),
            (numbers{2}));
  EXPECT_EQ(layers(with("lfm2_moe", "num_dense_layers", 2)), (numbers{2}));
  EXPECT_EQ(layers(with("jamba", "expert_layer_offset", 0)), (numbers{0, 2}));
  EXPECT_EQ(layers(with("ernie4_5_moe", "moe_layer_end_index", -1)), (numbers{1, 2}));
  EXPECT_EQ(layers(with("ernie4_5_moe", "moe_layer_end_index", 1)), (numbers{1}));
  EXPECT_EQ(layers(with("ernie4_5_moe", "moe_layer_interval", 3)), (numbers{2}));
  EXPECT_EQ(layers(with("llama4_text", "moe_layers", {1})), (numbers{1}));
  EXPECT_EQ(layers(with("llama4_text", "moe_layers", nullptr)), (numbers{0, 1}));
  json stepped = oracle("llama4_text");
  stepped.erase("moe_layers");
  stepped["interleave_moe_layer_step"] = 2;
  EXPECT_EQ(layers(*parse(stepped)), (numbers{1}));
  EXPECT_EQ(layers(with("nemotron_h", "hybrid_override_pattern", "E*ME")), (numbers{0, 3}));
  EXPECT_EQ(layers(without("nemotron_h", "hybrid_override_pattern")), (numbers{1, 3}));
  EXPECT_EQ(layers(without("nemotron_h", "num_hidden_layers")), (numbers{1, 3}));
  EXPECT_EQ(refusal_without("mixtral", "num_hidden_layers"),
            "model field num_hidden_layers is missing; supported: 1 to 1024");
  EXPECT_EQ(layers(with("step3p7", "text_config/moe_layers_enum", "0,2,3")), (numbers{0, 2}));
  EXPECT_EQ(refusal("step3p7", "text_config/moe_layers_enum", "1;2"),
            "model field text_config.moe_layers_enum is \"1;2\"; supported: text like \"3,4,5\" "
            "of layers 0 to 2");
  EXPECT_EQ(refusal("deepseek_v32", "mlp_layer_types", {"dense", "sparse"}),
            "model field mlp_layer_types is a list; supported: a list of 3 entries");
  EXPECT_EQ(refusal("deepseek_v32", "mlp_layer_types", {"dense", "x", "sparse"}),
            "model field mlp_layer_types is a list with \"x\"; supported: dense, sparse, moe, "
            "hash_moe");
}

TEST(family_keys, clamps_must_be_told_where_a_family_has_them) {
  EXPECT_EQ(refusal_without("deepseek_v4", "swiglu_limit"),
            "model field swiglu_limit is missing; supported: a number above 0, or null");
  EXPECT_EQ(with("deepseek_v4", "swiglu_limit", nullptr).activation.constants.limit, 0.0F);
  EXPECT_EQ(refusal("deepseek_v4", "swiglu_limit", 0.0),
            "activation: limit of swiglu is 0; it must be above 0");
  EXPECT_EQ(with("qwen3_moe", "swiglu_limit", 7.0).activation.constants.limit, 7.0F);
  EXPECT_EQ(refusal("qwen3_moe", "swiglu_alpha", 1.7),
            "model field swiglu_alpha is 1.7; supported: none in this family");
  json bare = oracle("minimax_m3_vl");
  bare["text_config"].erase("swiglu_alpha");
  EXPECT_EQ(parse(bare).error().text, "activation: alpha of swiglu_bias is missing");
  EXPECT_EQ(with("step3p7", "text_config/swiglu_limits", {nullptr, nullptr, 3.0, 9.0}).limits,
            (std::vector<float>{0.0F, 3.0F}));
  EXPECT_EQ(refusal("gemma4", "text_config/hidden_activation", "gelu"),
            "model field text_config.hidden_activation is \"gelu\"; supported: "
            "gelu_pytorch_tanh");
  EXPECT_EQ(refusal("nemotron_h", "mlp_hidden_act", "silu"),
            "model field mlp_hidden_act is \"silu\"; supported: relu2");
}

TEST(family_keys, both_names_of_a_model_type_are_known) {
  EXPECT_EQ(parse(oracle("qwen3_5_moe"))->model_type, "qwen3_5_moe");
  EXPECT_EQ(parse(oracle("step3p7"))->model_type, "step3p7");
  json inner = oracle("glm5_next");
  inner["text_config"].erase("model_type");
  EXPECT_EQ(parse(inner)->model_type, "glm5_next") << "the whole model's type";
  inner["text_config"]["model_type"] = "other_text";
  EXPECT_TRUE(parse(inner).error().text.starts_with(
      "model field text_config.model_type is \"other_text\""));
}

TEST(family_keys, quantised_forms_that_are_not_known_are_refused_by_field) {
  const std::string in = "quantization_config/";
  const std::string weights = in + "config_groups/group_0/weights/";
  const std::string named = "model field quantization_config.";
  EXPECT_EQ(refusal("deepseek_v3_fp8_block", in + "weight_block_size", {64, 64}),
            named + "weight_block_size is a list; supported: [128,128]");
  EXPECT_EQ(refusal("deepseek_v3_fp8_block", in + "activation_scheme", "static"),
            named + "activation_scheme is \"static\"; supported: dynamic");
  EXPECT_EQ(refusal("deepseek_v3_nvfp4", in + "quant_algo", "W4A8_AWQ"),
            named + "quant_algo is \"W4A8_AWQ\"; supported: FP8, NVFP4");
  EXPECT_EQ(refusal("qwen3_moe_fp8_ct", in + "format", "int-quantized"),
            named + "format is \"int-quantized\"; supported: float-quantized, pack-quantized");
  json hostile = oracle("qwen3_moe_fp8_ct");
  hostile["quantization_config"]["config_groups"] = {{"\x1b[31m", json::object()}};
  EXPECT_EQ(parse(hostile).error().text,
            named + "config_groups.?[31m.weights.num_bits is missing; supported: 8");
  const json group = oracle("qwen3_moe_fp8_ct")["quantization_config"]["config_groups"]["group_0"];
  EXPECT_EQ(
      refusal("qwen3_moe_fp8_ct", in + "config_groups", {{"group_0", group}, {"group_1", group}}),
      named + "config_groups is an object of 2 groups; supported: an object of one group");
  EXPECT_EQ(refusal("qwen3_moe_int4_g128", weights + "num_bits", 8),
            named + "config_groups.group_0.weights.num_bits is 8; supported: 4");
  EXPECT_EQ(refusal("qwen3_moe_int4_g128", weights + "group_size", 32),
            named + "config_groups.group_0.weights.group_size is 32; supported: 128");
  EXPECT_EQ(refusal("qwen3_moe_int4_g128", weights + "symmetric", false),
            named + "config_groups.group_0.weights.symmetric is false; supported: true");
  EXPECT_EQ(refusal("qwen3_moe_int4_g128", weights + "actorder", "group"),
            named + "config_groups.group_0.weights.actorder is \"group\"; supported: null");
  EXPECT_EQ(refusal("qwen3_moe_fp8_ct", weights + "strategy", "block"),
            named +
                "config_groups.group_0.weights.strategy is \"block\"; supported: tensor, "
                "channel");
  EXPECT_EQ(refusal("qwen3_moe", "quantization_config", {{"quant_method", "mxfp4"}}),
            named +
                "quant_method is \"mxfp4\"; supported: fp8, modelopt, compressed-tensors, "
                "mxfp4 (gpt_oss)");
  EXPECT_EQ(refusal("deepseek_v4_fp4", "expert_dtype", "fp6"),
            "model field expert_dtype is \"fp6\"; supported: fp4, fp8");
  EXPECT_EQ(refusal("deepseek_v3_nvfp4", "moe_intermediate_size", 72),
            "model field moe_intermediate_size is 72; supported: multiples of 16 for nvfp4");
  EXPECT_EQ(with("deepseek_v4_fp4", "quantization_config/expert_dtype", "fp4").format.quant,
            quant_kind::mxfp4);
}

}  // namespace
}  // namespace moetier
