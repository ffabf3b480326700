#include "workers/weights/routing_reader.hpp"

#include "tests/workers/weights/raw_checkpoint.hpp"

namespace moetier::workers {
namespace {

const std::string k_oracles = std::string(MOETIER_SOURCE_DIR) + "/tests/data/oracles/";

std::unique_ptr<checkpoint> opened(const raw_checkpoint& raw, const scratch_folder& folder) {
  raw.write(folder);
  auto weights = checkpoint::open(folder.path(), {.routers = true});
  EXPECT_TRUE(weights) << sentence(weights);
  return weights ? std::move(*weights) : nullptr;
}

expected<routing_tables> tables_of(const raw_checkpoint& raw) {
  const scratch_folder folder;
  const auto weights = opened(raw, folder);
  return weights ? weights->read_routing_tables() : expected<routing_tables>(routing_tables());
}

std::vector<float> floats_of(const raw_tensor& tensor) {
  std::vector<float> values(tensor.bytes.size() / 4);
  std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
  return values;
}

TEST(routing_reader, reads_biases_of_every_form) {
  raw_checkpoint raw = raw_checkpoint::of(k_oracles + "ernie4_5_moe");
  raw_tensor& bias = raw.tensors.at("model.layers.2.mlp.moe_statics.e_score_correction_bias");
  ASSERT_EQ(bias.shape, (std::vector<std::uint64_t>{1, 12}));
  const std::vector<float> values = floats_of(bias);
  EXPECT_EQ(tables_of(raw)->layers[1].bias, values);
  bias.shape = {12};
  EXPECT_EQ(tables_of(raw)->layers[1].bias, values);
  bias.shape = {12, 1};
  EXPECT_EQ(sentence(tables_of(raw)),
            "weights: layer 2 router model.layers.2.mlp.moe_statics.e_score_correction_bias: found "
            "F32 [12, 1], expected BF16 [12]");
  // bf16 biases are widened.
  bias.shape = {1, 12};
  bias.type = "BF16";
  bias.bytes.clear();
  for (const float value : values) {
    const std::uint16_t bits = bf16_from_f32(value);
    bias.bytes.append(reinterpret_cast<const char*>(&bits), 2);
  }
  EXPECT_EQ(tables_of(raw)->layers[1].bias[3], f32_from_bf16(bf16_from_f32(values[3])));
  EXPECT_EQ(raw_checkpoint::of(k_oracles + "longcat_flash")
                .tensors.at("model.layers.0.mlp.router.e_score_correction_bias")
                .shape,
            std::vector<std::uint64_t>{18});
  EXPECT_EQ(tables_of(raw_checkpoint::of(k_oracles + "longcat_flash"))->layers[0].bias.size(), 18u)
      << "identity experts have biases";
}

TEST(routing_reader, reads_scales_gates_and_nothing_where_there_is_none) {
  EXPECT_EQ(tables_of(raw_checkpoint::of(k_oracles + "gemma4"))->layers[1].expert_scale.size(),
            12u);
  EXPECT_EQ(tables_of(raw_checkpoint::of(k_oracles + "qwen2_moe"))->layers[0].shared_gate.size(),
            64u);
  const auto plain = tables_of(raw_checkpoint::of(k_oracles + "mixtral"));
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->layers, std::vector<layer_routing>(2));
}

TEST(routing_reader, a_bias_that_lacks_or_is_switched_off_is_refused) {
  raw_checkpoint raw = raw_checkpoint::of(k_oracles + "lfm2_moe");
  const std::string name = "model.layers.1.feed_forward.expert_bias";
  raw.config["use_expert_bias"] = false;
  EXPECT_EQ(sentence(tables_of(raw)), "weights: layer 1 router " + name +
                                          ": found a tensor, expected none, as config.json has no "
                                          "selection bias");
  raw.tensors.erase(name);
  raw.tensors.erase("model.layers.2.feed_forward.expert_bias");
  const auto without = tables_of(raw);
  ASSERT_TRUE(without) << sentence(without);
  EXPECT_TRUE(without->layers[0].bias.empty());
  raw.config["use_expert_bias"] = true;
  EXPECT_EQ(sentence(tables_of(raw)),
            "weights: layer 1 router " + name + ": found no tensor, expected BF16 [12]");
}

TEST(routing_reader, token_tables_are_checked_id_by_id) {
  const auto refusal = [](std::int64_t at, std::int64_t id) {
    raw_checkpoint raw = raw_checkpoint::of(k_oracles + "deepseek_v4");
    raw_tensor& table = raw.tensors.at("layers.0.ffn.gate.tid2eid");
    table.bytes.replace(static_cast<std::size_t>(at) * 8, 8,
                        std::string(reinterpret_cast<const char*>(&id), 8));
    const scratch_folder folder;
    const auto weights = opened(raw, folder);
    return weights ? sentence(weights->read_routing_tables()) : std::string();
  };
  const std::string name = "weights: layer 0 router layers.0.ffn.gate.tid2eid: found ";
  EXPECT_EQ(refusal(5, 12), name + "expert 12 in row 1, expected experts 0 to 11");
  EXPECT_EQ(refusal(5, -1), name + "expert -1 in row 1, expected experts 0 to 11");
  EXPECT_EQ(refusal(5, std::int64_t{1} << 40),
            name + "expert 1099511627776 in row 1, expected experts 0 to 11");
  raw_checkpoint raw = raw_checkpoint::of(k_oracles + "deepseek_v4");
  std::int64_t first = 0;
  std::memcpy(&first, raw.tensors.at("layers.0.ffn.gate.tid2eid").bytes.data(), 8);
  EXPECT_EQ(refusal(1, first), name + "expert " + std::to_string(first) +
                                   " twice in row 0, expected every expert once");
}

}  // namespace
}  // namespace moetier::workers
