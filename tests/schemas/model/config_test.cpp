#include "schemas/model/config.hpp"

#include <random>
#include <set>

#include <nlohmann/json.hpp>

#include "schemas/model/family.hpp"
#include "tests/schemas/file/scratch_folder.hpp"

namespace moetier {
namespace {

using json = nlohmann::json;

json qwen3() {
  return json{{"model_type", "qwen3_moe"},
              {"hidden_size", 256},
              {"moe_intermediate_size", 64},
              {"intermediate_size", 512},
              {"num_experts", 32},
              {"num_experts_per_tok", 4},
              {"num_hidden_layers", 6},
              {"norm_topk_prob", true},
              {"decoder_sparse_step", 1},
              {"hidden_act", "silu"},
              {"mlp_only_layers", json::array()},
              {"torch_dtype", "bfloat16"}};
}

json mixtral() {
  return json{{"model_type", "mixtral"}, {"hidden_size", 64},        {"intermediate_size", 96},
              {"num_local_experts", 8},  {"num_experts_per_tok", 2}, {"num_hidden_layers", 2},
              {"hidden_act", "silu"},    {"dtype", "float16"}};
}

expected<model_description> parse(const json& config) {
  return parse_config(config.dump(), "config.json");
}

// `base` with one field replaced, or left out where `value` is discarded.
std::string refusal(json base, const std::string& field, const json& value) {
  base[field] = value;
  return sentence(parse(base));
}

std::vector<layer_id> layers(std::initializer_list<std::uint16_t> numbers) {
  std::vector<layer_id> ids;
  for (const std::uint16_t n : numbers) ids.emplace_back(n);
  return ids;
}

TEST(config, reads_qwen3_moe_in_full) {
  const auto model = parse(qwen3());
  ASSERT_TRUE(model) << sentence(model);
  EXPECT_EQ(model->model_type, "qwen3_moe");
  EXPECT_EQ(model->hidden_size, 256u);
  EXPECT_EQ(model->intermediate_size, 64u);
  EXPECT_EQ(model->experts, 32u);
  EXPECT_EQ(model->top_k, 4u);
  EXPECT_EQ(model->layers_total, 6u);
  EXPECT_EQ(model->moe_layers, layers({0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(model->routing.method, routing_method::renormalize_naive);
  EXPECT_EQ(model->activation.kind, activation_kind::swiglu);
  EXPECT_EQ(model->format.stored, dtype::bf16);
}

TEST(config, reads_mixtral_in_full) {
  const auto model = parse(mixtral());
  ASSERT_TRUE(model) << sentence(model);
  EXPECT_EQ(model->intermediate_size, 96u);
  EXPECT_EQ(model->experts, 8u);
  EXPECT_EQ(model->routing.method, routing_method::renormalize);
  EXPECT_EQ(model->format.stored, dtype::f16);
  EXPECT_EQ(model->moe_layers, layers({0, 1}));
}

TEST(config, norm_topk_prob_chooses_the_method_of_qwen3_and_is_off_by_default) {
  json config = qwen3();
  config["norm_topk_prob"] = false;
  EXPECT_EQ(parse(config)->routing.method, routing_method::default_softmax);
  config.erase("norm_topk_prob");
  EXPECT_EQ(parse(config)->routing.method, routing_method::default_softmax);
  EXPECT_EQ(refusal(qwen3(), "norm_topk_prob", 1),
            "model field norm_topk_prob is 1; supported: true or false");
}

TEST(config, sparse_step_and_dense_layers_choose_the_moe_layers_of_qwen3) {
  json config = qwen3();
  config["decoder_sparse_step"] = 2;
  EXPECT_EQ(parse(config)->moe_layers, layers({1, 3, 5}));
  config["mlp_only_layers"] = {3, 0};
  EXPECT_EQ(parse(config)->moe_layers, layers({1, 5}));
  config["decoder_sparse_step"] = 7;
  EXPECT_EQ(sentence(parse(config)),
            "model field decoder_sparse_step is 7; supported: a step that "
            "leaves a MoE layer among 6");
  json other = mixtral();
  other["decoder_sparse_step"] = 2;
  EXPECT_EQ(parse(other)->moe_layers, layers({0, 1})) << "no key of this family";
}

TEST(config, every_other_family_is_refused_by_name) {
  std::string known;
  for (const family& kin : families())
    known.append(known.empty() ? "" : ", ").append(kin.model_types.front());
  for (const char* type : {"deepseek_v9", "qwen3_moe_text", "bert", ""}) {
    EXPECT_EQ(refusal(qwen3(), "model_type", type),
              "model field model_type is \"" + std::string(type) + "\"; supported: " + known);
  }
  EXPECT_EQ(refusal(qwen3(), "model_type", nullptr),
            "model field model_type is missing; supported: " + known);
  EXPECT_EQ(refusal(qwen3(), "model_type", json::array()),
            "model field model_type is a list; supported: " + known);
  EXPECT_EQ(parse(json{{"model_type", "opt"}}).error().code, status::unsupported);
}

TEST(config, the_names_of_the_expert_count_must_agree) {
  json config = qwen3();
  config["num_local_experts"] = 32;
  config["n_routed_experts"] = 32;
  EXPECT_EQ(parse(config)->experts, 32u);
  EXPECT_EQ(refusal(config, "num_local_experts", 16),
            "model field num_local_experts is 16; supported: 32 as num_experts says");
  config.erase("num_experts");
  config.erase("num_local_experts");
  EXPECT_EQ(parse(config)->experts, 32u);
  config.erase("n_routed_experts");
  EXPECT_EQ(sentence(parse(config)),
            "model field num_experts is missing; supported: the number of experts");
}

TEST(config, the_names_of_the_experts_per_token_must_agree_too) {
  json config = qwen3();
  config.erase("num_experts_per_tok");
  EXPECT_EQ(sentence(parse(config)),
            "model field num_experts_per_tok is missing; supported: 1 to 32");
  config["experts_per_token"] = 3;
  EXPECT_EQ(parse(config)->top_k, 3u);
  EXPECT_EQ(refusal(config, "num_experts_per_tok", 2),
            "model field experts_per_token is 3; supported: 2 as num_experts_per_tok says");
}

TEST(config, numbers_are_whole_and_within_the_limits) {
  struct bound {
    const char* field;
    std::uint64_t most;
  };
  for (const auto& [field, most] : {bound{"hidden_size", 65536},
                                    {"moe_intermediate_size", 262144},
                                    {"num_experts_per_tok", 32},
                                    {"num_hidden_layers", 1024}}) {
    json config = qwen3();
    config[field] = most;
    EXPECT_TRUE(parse(config)) << field;
    const std::string supported = "; supported: 1 to " + std::to_string(most);
    const std::string name = "model field " + std::string(field) + " is ";
    EXPECT_EQ(refusal(qwen3(), field, most + 1), name + std::to_string(most + 1) + supported);
    EXPECT_EQ(refusal(qwen3(), field, 0), name + "0" + supported);
    EXPECT_EQ(refusal(qwen3(), field, -1), name + "-1" + supported);
    EXPECT_EQ(refusal(qwen3(), field, 1.5), name + "1.5" + supported);
    EXPECT_EQ(refusal(qwen3(), field, "64"), name + "\"64\"" + supported);
    EXPECT_EQ(refusal(qwen3(), field, nullptr), name + "missing" + supported);
    EXPECT_EQ(refusal(qwen3(), field, json::object()), name + "an object" + supported);
    EXPECT_EQ(refusal(qwen3(), field, 0xffffffffffffffffu),
              name + "18446744073709551615" + supported);
  }
  json many = qwen3();
  many["num_experts"] = 4096;
  many["num_experts_per_tok"] = 256;
  EXPECT_TRUE(parse(many));
  EXPECT_EQ(refusal(many, "num_experts_per_tok", 257),
            "model field num_experts_per_tok is 257; supported: 1 to 256");
  EXPECT_EQ(refusal(many, "num_experts", 4097),
            "model field num_experts is 4097; supported: 1 to 4096");
  EXPECT_EQ(refusal(qwen3(), "decoder_sparse_step", 0),
            "model field decoder_sparse_step is 0; supported: 1 to 1024");
  EXPECT_EQ(refusal(qwen3(), "mlp_only_layers", {1, 6}),
            "model field mlp_only_layers is a list with 6; supported: a list of layers 0 to 5");
  EXPECT_EQ(refusal(qwen3(), "mlp_only_layers", 3),
            "model field mlp_only_layers is 3; supported: a list of layers 0 to 5");
}

TEST(config, element_type_has_two_names_that_must_agree) {
  json config = qwen3();
  config["dtype"] = "bfloat16";
  EXPECT_TRUE(parse(config));
  EXPECT_EQ(refusal(config, "dtype", "float32"),
            "model field dtype is \"float32\"; supported: \"bfloat16\" as torch_dtype says");
  config.erase("torch_dtype");
  config["dtype"] = "float32";
  EXPECT_EQ(parse(config)->format.stored, dtype::f32);
  EXPECT_EQ(refusal(config, "dtype", "float64"),
            "model field dtype is \"float64\"; supported: bfloat16, float16, float32");
  EXPECT_EQ(refusal(config, "dtype", nullptr),
            "model field dtype is missing; supported: bfloat16, float16, float32");
  EXPECT_EQ(refusal(qwen3(), "torch_dtype", "auto"),
            "model field torch_dtype is \"auto\"; supported: bfloat16, float16, float32");
}

TEST(config, refuses_other_activations_and_unknown_quantised_files) {
  EXPECT_EQ(refusal(qwen3(), "hidden_act", "gelu"),
            "model field hidden_act is \"gelu\"; supported: silu");
  const std::string supported = "; supported: fp8, modelopt, compressed-tensors, mxfp4 (gpt_oss)";
  for (const char* method : {"awq", "gptq", "bitsandbytes", "mxfp4", "w4a8"}) {
    EXPECT_EQ(refusal(qwen3(), "quantization_config", {{"quant_method", method}}),
              "model field quantization_config.quant_method is \"" + std::string(method) + "\"" +
                  supported);
  }
  EXPECT_EQ(refusal(qwen3(), "quantization_config", json::object()),
            "model field quantization_config.quant_method is missing" + supported);
  EXPECT_EQ(refusal(qwen3(), "quantization_config", "awq"),
            "model field quantization_config is \"awq\"; supported: an object");
  EXPECT_EQ(refusal(qwen3(), "quantization_config", nullptr), "ok");
}

TEST(config, a_multimodal_models_text_part_is_what_counts) {
  json config{{"model_type", "some_vision_model"}, {"hidden_size", 7}, {"text_config", qwen3()}};
  ASSERT_TRUE(parse(config)) << sentence(parse(config));
  EXPECT_EQ(*parse(config), *parse(qwen3()));
  config["text_config"]["num_experts"] = "x";
  EXPECT_EQ(sentence(parse(config)),
            "model field text_config.num_experts is \"x\"; supported: 1 to 4096");
  config["text_config"] = qwen3();
  config["quantization_config"] = {{"quant_method", "awq"}};
  EXPECT_EQ(sentence(parse(config)),
            "model field quantization_config.quant_method is \"awq\"; "
            "supported: fp8, modelopt, compressed-tensors, mxfp4 (gpt_oss)");
  config["text_config"] = 3;
  EXPECT_EQ(sentence(parse(config)), "model field text_config is 3; supported: an object");
}

TEST(config, foreign_text_never_reaches_a_sentence_raw) {
  EXPECT_EQ(refusal(qwen3(), "model_type", "x\x1b[31m\xc3\xa4").substr(0, 65),
            "model field model_type is \"x\\u001b[31m\\u00e4\"; supported: bailing");
  EXPECT_EQ(refusal(qwen3(), "hidden_act", "x\x1b[31m\xc3\xa4"),
            "model field hidden_act is \"x\\u001b[31m\\u00e4\"; supported: silu");
  EXPECT_LT(refusal(qwen3(), "hidden_act", std::string(100000, 'x')).size(), 200u);
}

TEST(config, numbers_that_are_not_finite_matter_only_where_they_are_read) {
  const auto with = [](const std::string& field) {
    std::string text = qwen3().dump();
    return sentence(parse_config(text.insert(1, field + ","), "c"));
  };
  EXPECT_EQ(with(R"("time_step_limit": [0.0, Infinity])"), "ok");
  EXPECT_EQ(with(R"("other": {"x": NaN})"), "ok");
  EXPECT_EQ(with(R"("swiglu_limit": Infinity)"),
            "model field swiglu_limit is Infinity; supported: a finite number");
  EXPECT_EQ(with(R"("num_local_experts": NaN)"),
            "model field num_local_experts is NaN; supported: 1 to 4096");
  EXPECT_EQ(with(R"("moe_renormalize": -Infinity)"),
            "model field moe_renormalize is -Infinity; supported: true or false");
}

TEST(config, refuses_hostile_files) {
  EXPECT_EQ(sentence(parse_config(R"({"model_type": "mixtral", "model_type": "qwen3_moe"})", "c")),
            "c is malformed: key \"model_type\" stands twice");
  EXPECT_EQ(sentence(parse_config("[]", "c")), "c is malformed: it is no JSON object");
  EXPECT_EQ(sentence(parse_config(R"({"a":)" + std::string(100, '['), "c")),
            "c is malformed: it nests deeper than 16");
  EXPECT_EQ(sentence(parse_config("{" + std::string(k_config_bytes_max, ' '), "c")),
            "the size of c in bytes is 1048577; at most 1048576");
  const scratch_folder folder;
  EXPECT_EQ(sentence(read_config(folder.file("config.json")), folder),
            "cannot read DIR/config.json: No such file or directory");
  folder.write("config.json", std::string(k_config_bytes_max + 1, ' '));
  EXPECT_EQ(sentence(read_config(folder.file("config.json")), folder),
            "the size of DIR/config.json in bytes is 1048577; at most 1048576");
}

TEST(config, any_mutation_is_a_description_or_a_typed_error) {
  const std::string good = qwen3().dump();
  for (std::uint64_t seed = 0; seed < 20000; ++seed) {
    std::mt19937_64 random(seed);
    std::string text = good;
    for (std::uint64_t edits = 1 + random() % 4; edits > 0; --edits)
      text[random() % text.size()] = static_cast<char>(random());
    const auto model = parse_config(text, "c");
    if (model) {
      ASSERT_LE(model->top_k, model->experts) << "seed " << seed;
    } else {
      ASSERT_NE(model.error().code, status::internal) << "seed " << seed;
    }
  }
}

TEST(config, reads_the_demos_and_the_oracles_files) {
  const std::string root = MOETIER_SOURCE_DIR;
  const auto demo = read_config(root + "/deploy/demo/model/config.json");
  ASSERT_TRUE(demo) << sentence(demo);
  EXPECT_EQ(demo->experts, 32u);
  EXPECT_EQ(demo->moe_layers.size(), 4u);
  const auto raw = read_config(root + "/tests/data/oracles/qwen3_moe_nonorm/config.json");
  ASSERT_TRUE(raw) << sentence(raw);
  EXPECT_EQ(raw->routing.method, routing_method::default_softmax);
  const auto other = read_config(root + "/tests/data/oracles/mixtral/config.json");
  ASSERT_TRUE(other) << sentence(other);
  EXPECT_EQ(other->intermediate_size, 96u);
}

TEST(model_description, fingerprint_covers_every_field) {
  const model_description model = *parse(qwen3());
  EXPECT_EQ(model.fingerprint, fingerprint_of(model));
  EXPECT_EQ(model.fingerprint, 15559600461843678193u)
      << "part of the protocol: it may never change";
  using change = void (*)(model_description&);
  const std::vector<change> changes{[](auto& m) { m.model_type.push_back('x'); },
                                    [](auto& m) { m.hidden_size = 1; },
                                    [](auto& m) { m.intermediate_size = 1; },
                                    [](auto& m) { m.experts = 1; },
                                    [](auto& m) { m.top_k = 1; },
                                    [](auto& m) { m.layers_total = 1; },
                                    [](auto& m) { m.moe_layers.pop_back(); },
                                    [](auto& m) { m.routing.method = routing_method::renormalize; },
                                    [](auto& m) { m.routing.renormalise = !m.routing.renormalise; },
                                    [](auto& m) { m.routing.scaling = 2.5F; },
                                    [](auto& m) { m.routing.epsilon = 1e-6F; },
                                    [](auto& m) { m.routing.power = 2.0F; },
                                    [](auto& m) { m.routing.groups = 4; },
                                    [](auto& m) { m.routing.groups_kept = 2; },
                                    [](auto& m) { m.routing.identity_experts = 3; },
                                    [](auto& m) { m.activation.kind = activation_kind::geglu; },
                                    [](auto& m) { m.activation.constants.alpha = 1.0F; },
                                    [](auto& m) { m.activation.constants.beta = 1.0F; },
                                    [](auto& m) { m.activation.constants.limit = 1.0F; },
                                    [](auto& m) { m.limits = {1.0F}; },
                                    [](auto& m) { m.shared_limits = {1.0F}; },
                                    [](auto& m) { m.format.quant = quant_kind::nvfp4; },
                                    [](auto& m) { m.format.stored = dtype::f32; },
                                    [](auto& m) { m.expert_bias = true; },
                                    [](auto& m) { m.weight_at = weight_point::input; },
                                    [](auto& m) { m.shared.intermediate_size = 64; },
                                    [](auto& m) { m.shared.gated = true; },
                                    [](auto& m) { m.router_width = 1; },
                                    [](auto& m) { m.router_reads_hidden = false; }};
  std::set<std::uint64_t> seen{model.fingerprint};
  for (std::size_t i = 0; i < changes.size(); ++i) {
    model_description other = model;
    changes[i](other);
    EXPECT_TRUE(seen.insert(fingerprint_of(other)).second) << "change " << i;
  }
  model_description same = model;
  same.shared.count = 7;
  EXPECT_EQ(fingerprint_of(same), model.fingerprint) << "it follows from sizes and formats";
}

TEST(model_description, moe_index_finds_moe_layers_only) {
  json config = qwen3();
  config["decoder_sparse_step"] = 2;
  const model_description model = *parse(config);
  EXPECT_EQ(moe_index(model, layer_id(1)), 0);
  EXPECT_EQ(moe_index(model, layer_id(5)), 2);
  EXPECT_EQ(moe_index(model, layer_id(2)), -1);
  EXPECT_EQ(moe_index(model, layer_id(900)), -1);
}

}  // namespace
}  // namespace moetier
