#include "workers/weights/checkpoint.hpp"

#include <cmath>
#include <cstring>

#include "tests/workers/weights/small_model.hpp"

namespace moetier::workers {
namespace {

class checkpoint_test : public testing::Test {
 protected:
  std::string refusal(bool routers = false) {
    model_.write(folder_);
    return sentence(checkpoint::open(folder_.path(), {.routers = routers}), folder_);
  }

  small_model model_;
  const scratch_folder folder_;
};

TEST_F(checkpoint_test, loads_the_three_projections_of_an_expert) {
  model_.write(folder_);
  auto opened = checkpoint::open(folder_.path());
  ASSERT_TRUE(opened) << sentence(opened);
  checkpoint& weights = **opened;
  EXPECT_EQ(weights.model().moe_layers.size(), 2u);
  EXPECT_EQ(weights.projection_bytes(), 32u);
  std::vector<float> gate(8), up(8), down(8);
  ASSERT_TRUE(weights.load(layer_id(3), expert_id(2),
                           {.gate = std::as_writable_bytes(std::span(gate)),
                            .up = std::as_writable_bytes(std::span(up)),
                            .down = std::as_writable_bytes(std::span(down))}));
  EXPECT_EQ(gate[0], 3200.0F);
  EXPECT_EQ(up[1], 3211.0F);
  EXPECT_EQ(down[7], 3227.0F);
}

TEST_F(checkpoint_test, reads_routers_only_when_asked) {
  EXPECT_EQ(refusal(true), "ok");
  auto opened = checkpoint::open(folder_.path(), {.routers = true});
  const auto router = (*opened)->read_router(layer_id(1));
  ASSERT_TRUE(router) << sentence(router);
  EXPECT_EQ(router->element, dtype::f32);
  EXPECT_EQ(router->bytes.size(), 48u);

  model_.tensors.erase(small_model::router(3));
  EXPECT_EQ(refusal(false), "ok");
  EXPECT_EQ(refusal(true),
            "weights: layer 3 router model.layers.3.mlp.gate.weight: found no "
            "tensor, expected F32 [3, 4]");
  model_.tensors[small_model::router(3)] = {dtype::f32, {4, 3}, std::vector<float>(12)};
  EXPECT_EQ(refusal(false), "ok");
  EXPECT_EQ(refusal(true),
            "weights: layer 3 router model.layers.3.mlp.gate.weight: found F32 "
            "[4, 3], expected F32 [3, 4]");
}

TEST_F(checkpoint_test, a_router_with_an_element_that_is_not_finite_is_refused_by_name) {
  for (const float bad : {NAN, INFINITY, -INFINITY}) {
    model_.tensors[small_model::router(3)].values[7] = bad;
    EXPECT_EQ(refusal(true),
              "weights: layer 3 router model.layers.3.mlp.gate.weight: found an element that is "
              "not finite at 7, expected finite numbers");
    EXPECT_EQ(refusal(false), "ok") << "nobody asks for routers";
  }
}

TEST_F(checkpoint_test, an_expert_with_an_element_that_is_not_finite_is_refused_by_name) {
  std::vector<float> gate(8), up(8), down(8);
  const expert_buffers room{.gate = std::as_writable_bytes(std::span(gate)),
                            .up = std::as_writable_bytes(std::span(up)),
                            .down = std::as_writable_bytes(std::span(down))};
  for (const float bad : {NAN, INFINITY, -INFINITY}) {
    auto& values = model_.tensors[small_model::name(3, 1, "up_proj")].values;
    values[5] = bad;
    values[7] = bad;
    model_.write(folder_);
    auto opened = checkpoint::open(folder_.path());
    ASSERT_TRUE(opened) << "weights are looked at when they are read";
    EXPECT_TRUE((*opened)->load(layer_id(3), expert_id(0), room));
    const auto refused = (*opened)->load(layer_id(3), expert_id(1), room);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().text,
              "weights: layer 3 expert 1 projection up: found 2 elements that are not finite, the "
              "first at 5, expected finite numbers; model.nonfinite=serve computes with them");
    auto serving = checkpoint::open(folder_.path(), {.serve_nonfinite = true});
    ASSERT_TRUE(serving);
    EXPECT_TRUE((*serving)->load(layer_id(3), expert_id(1), room));
  }
}

TEST_F(checkpoint_test, a_tensor_beside_the_router_that_the_family_has_not_is_refused_by_name) {
  const small_tensor any{dtype::f32, {3}, {1.0F, 1.0F, 1.0F}};
  for (const char* name : {"mlp.gate.e_score_correction_bias", "mlp.gate.bias", "mlp.expert_bias",
                           "mlp.moe_statics.e_score_correction_bias"}) {
    model_ = small_model();
    model_.tensors[std::string("model.layers.3.") + name] = any;
    EXPECT_EQ(refusal(), std::string("weights: layer 3 model.layers.3.") + name +
                             ": found a tensor, expected none of this name beside the router of "
                             "qwen3_moe");
    model_ = small_model();
    model_.tensors[std::string("model.layers.2.") + name] = any;  // a dense layer's own matter
    EXPECT_EQ(refusal(), "ok") << name;
  }
}

TEST_F(checkpoint_test, refuses_a_missing_and_a_partial_expert) {
  model_.tensors.erase(small_model::name(3, 1, "up_proj"));
  EXPECT_EQ(refusal(),
            "weights: layer 3 expert 1 model.layers.3.mlp.experts.1.up_proj.weight: "
            "found no tensor, expected F32 [2, 4]");
  model_.tensors.erase(small_model::name(3, 1, "gate_proj"));
  model_.tensors.erase(small_model::name(3, 1, "down_proj"));
  EXPECT_EQ(refusal(),
            "weights: layer 3 expert 1 model.layers.3.mlp.experts.1.gate_proj.weight: "
            "found no tensor, expected F32 [2, 4]");
}

TEST_F(checkpoint_test, a_config_that_claims_millions_of_tensors_ends_at_the_first_missing) {
  model_.config = R"({"model_type": "qwen3_moe", "hidden_size": 4, "moe_intermediate_size": 2,)"
                  R"( "num_experts": 4096, "num_experts_per_tok": 2, "num_hidden_layers": 1024,)"
                  R"( "dtype": "float32"})";
  EXPECT_EQ(refusal(),
            "weights: layer 0 expert 0 model.layers.0.mlp.experts.0.gate_proj.weight: "
            "found no tensor, expected F32 [2, 4]");
}

TEST_F(checkpoint_test, refuses_surplus_tensors) {
  const small_tensor any{dtype::f32, {1}, {1.0F}};
  model_.tensors[small_model::name(1, 3, "up_proj")] = any;
  EXPECT_EQ(refusal(),
            "weights: layer 1 model.layers.1.mlp.experts.3.up_proj.weight: "
            "found a tensor, expected experts 0 to 2 only");
  model_ = small_model();
  model_.tensors[small_model::name(2, 0, "up_proj")] = any;
  EXPECT_EQ(refusal(),
            "weights: layer 2 model.layers.2.mlp.experts.0.up_proj.weight: "
            "found a tensor, expected none, as config.json makes this layer dense");
  model_ = small_model();
  model_.tensors[small_model::name(1, 0, "up_proj") + "_scale_inv"] = any;
  EXPECT_EQ(refusal(),
            "weights: layer 1 model.layers.1.mlp.experts.0.up_proj.weight_scale_inv: found a "
            "tensor, expected none of this name");
  model_ = small_model();
  model_.tensors["model.layers.1.mlp.experts.gate_up_proj"] = any;
  EXPECT_EQ(refusal(),
            "weights: layer 1 model.layers.1.mlp.experts.gate_up_proj: found a tensor, "
            "expected none of this name");
}

TEST_F(checkpoint_test, layers_behind_the_last_are_not_part_of_the_model) {
  model_.tensors[small_model::name(4, 0, "up_proj")] = {dtype::f32, {1}, {1.0F}};
  EXPECT_EQ(refusal(true), "ok");
}

TEST_F(checkpoint_test, refuses_shapes_and_types_by_expert_and_name) {
  const std::string name = small_model::name(1, 2, "down_proj");
  const std::string where = "weights: layer 1 expert 2 " + name + ": found ";
  model_.tensors[name].shape = {2, 4};
  EXPECT_EQ(refusal(), where + "F32 [2, 4], expected F32 [4, 2]") << "an untransposed matrix";
  model_.tensors[name].shape = {8};
  EXPECT_EQ(refusal(), where + "F32 [8], expected F32 [4, 2]");
  model_.tensors[name] = {dtype::bf16, {4, 2}, std::vector<float>(8)};
  EXPECT_EQ(refusal(), where + "BF16 [4, 2], expected F32 [4, 2]");
  model_.tensors[name] = {dtype::f32, {0, 2}, {}};
  EXPECT_EQ(refusal(), where + "F32 [0, 2], expected F32 [4, 2]");
}

TEST_F(checkpoint_test, finds_the_text_model_inside_a_multimodal_one) {
  std::map<std::string, small_tensor> renamed;
  for (const auto& [name, tensor] : model_.tensors)
    renamed[name.starts_with("model.layers.") ? "language_model." + name : name] = tensor;
  model_.tensors = renamed;
  EXPECT_EQ(refusal(true), "ok");
  model_.tensors.erase("language_model." + small_model::name(1, 0, "up_proj"));
  EXPECT_EQ(refusal(),
            "weights: layer 1 expert 0 language_model.model.layers.1.mlp.experts.0.up_proj."
            "weight: found no tensor, expected F32 [2, 4]");
}

TEST_F(checkpoint_test, a_file_cut_or_replaced_after_it_was_opened_raises_no_signal) {
  model_.write(folder_);
  auto opened = checkpoint::open(folder_.path());
  ASSERT_TRUE(opened);
  std::vector<std::byte> bytes(96);
  const std::span all(bytes);
  const expert_buffers into{all.first(32), all.subspan(32, 32), all.subspan(64)};
  std::filesystem::resize_file(folder_.file("model.safetensors"), 64);
  const auto cut = (*opened)->load(layer_id(1), expert_id(0), into);
  ASSERT_FALSE(cut);
  EXPECT_EQ(cut.error().why, reason::file_unreadable);
}

TEST_F(checkpoint_test, the_digest_tells_different_files_apart) {
  model_.write(folder_);
  const std::uint64_t first = (*checkpoint::open(folder_.path()))->digest();
  model_.tensors["model.embed_tokens.weight"] = {dtype::f32, {2}, {1.0F, 2.0F}};
  model_.write(folder_);
  EXPECT_NE((*checkpoint::open(folder_.path()))->digest(), first);
}

TEST_F(checkpoint_test, passes_on_what_the_readers_refuse) {
  model_.write(folder_);
  folder_.write("config.json", R"({"model_type": "gpt_oss"})");
  EXPECT_EQ(sentence(checkpoint::open(folder_.path())),
            "model field hidden_size is missing; supported: 1 to 65536");
  EXPECT_EQ(sentence(checkpoint::open(folder_.file("none")), folder_),
            "cannot read DIR/none/config.json: No such file or directory");
}

}  // namespace
}  // namespace moetier::workers
