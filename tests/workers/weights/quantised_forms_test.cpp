// Quantised files in forms that no oracle has: scales by row, shared experts of several pieces and
// of another format, stacked blocks. Each is built from an oracle's own tensors, so that what must
// come out is known.

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

all_experts loaded(const raw_checkpoint& raw) {
  const scratch_folder folder;
  const auto weights = opened(raw, folder);
  if (!weights) return {};
  auto all = load_all(*weights);
  EXPECT_TRUE(all) << sentence(all);
  return all.value_or(all_experts());
}

std::vector<std::string> names_with(const raw_checkpoint& raw, const std::string& part) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : raw.tensors) {
    if (name.find(part) != std::string::npos) names.push_back(name);
  }
  return names;
}

// The rows of a matrix twice, or every row twice as long.
void double_matrix(raw_tensor& tensor, bool longer) {
  const std::size_t pitch = tensor.bytes.size() / tensor.shape[0];
  std::string twice;
  if (longer) {
    for (std::size_t row = 0; row < tensor.shape[0]; ++row) {
      twice += tensor.bytes.substr(row * pitch, pitch);
      twice += tensor.bytes.substr(row * pitch, pitch);
    }
  } else {
    twice = tensor.bytes + tensor.bytes;
  }
  tensor.bytes = twice;
  tensor.shape[longer ? 1 : 0] *= 2;
}

TEST(quantised_forms, shared_experts_of_two_pieces_are_cut_with_their_scales) {
  for (const char* family : {"deepseek_v3_nvfp4", "deepseek_v3_fp8_block", "dots1"}) {
    raw_checkpoint raw = raw_checkpoint::of(k_oracles + family);
    const all_experts before = loaded(raw);
    const auto pieces_before = raw.config["n_shared_experts"].get<std::uint32_t>();
    raw.config["n_shared_experts"] = 2 * pieces_before;
    for (const std::string& name : names_with(raw, "shared_experts.")) {
      raw_tensor& tensor = raw.tensors.at(name);
      if (tensor.shape.size() == 2)
        double_matrix(tensor, name.find("down_proj") != std::string::npos);
    }
    const all_experts after = loaded(raw);
    ASSERT_GT(after.size(), before.size()) << family;
    const auto experts = raw.config["n_routed_experts"].get<std::uint32_t>();
    for (const auto& [place, bytes] : after) {
      auto [layer, expert] = place;
      if (expert >= experts + pieces_before) expert -= pieces_before;
      EXPECT_TRUE(bytes == before.at({layer, expert})) << family << " " << place.second;
    }
  }
}

TEST(quantised_forms, the_last_piece_is_filled_up_with_zeros_of_scale_one) {
  raw_checkpoint raw = raw_checkpoint::of(k_oracles + "qwen3_moe_fp8_modelopt");
  const all_experts before = loaded(raw);
  raw.config["model_type"] = "qwen2_moe";
  raw.config["shared_expert_intermediate_size"] = 96;  // of 64 each
  for (const std::string layer : {"0", "1"}) {
    const std::string mlp = "model.layers." + layer + ".mlp.";
    raw.tensors[mlp + "shared_expert_gate.weight"] = {"BF16", {1, 128}, std::string(256, '\0')};
    for (const std::string part : {"gate_proj", "up_proj", "down_proj"}) {
      for (const std::string ending : {".weight", ".weight_scale"}) {
        raw_tensor tensor = raw.tensors.at(mlp + "experts.0." + part + ending);
        if (ending == ".weight") {
          double_matrix(tensor, part == "down_proj");
          if (part == "down_proj") {
            std::string cut;
            for (std::size_t row = 0; row < 128; ++row) cut += tensor.bytes.substr(row * 128, 96);
            tensor = {tensor.type, {128, 96}, cut};
          } else {
            tensor = {tensor.type, {96, 128}, tensor.bytes.substr(0, 96 * 128)};
          }
        }
        raw.tensors[mlp + "shared_expert." + part + ending] = tensor;
      }
    }
  }
  const all_experts after = loaded(raw);
  ASSERT_EQ(after.size(), 2u * 10u);
  const weight_format format{.quant = quant_kind::fp8_tensor};
  const matrix_form wide = matrix_form_of(format, 64, 128);
  for (const std::uint32_t layer : {0u, 1u}) {
    const std::string& whole = before.at({layer, 0});
    EXPECT_TRUE(after.at({layer, 8}) == whole);
    const std::string& half = after.at({layer, 9});
    EXPECT_EQ(half.substr(0, 32 * 128), whole.substr(0, 32 * 128)) << "the live gate rows";
    EXPECT_EQ(half.substr(32 * 128, 32 * 128), std::string(32 * 128, '\0'));
    const float one = 1.0F;
    for (std::size_t row = 0; row < 64; ++row) {
      const std::string scale = half.substr(wide.scales_offset + 4 * row, 4);
      EXPECT_EQ(scale, row < 32 ? whole.substr(wide.scales_offset, 4)
                                : std::string(reinterpret_cast<const char*>(&one), 4))
          << row;
    }
    const std::size_t down = 2 * wide.bytes;
    for (std::size_t row = 0; row < 128; ++row) {
      EXPECT_EQ(half.substr(down + row * 64, 32), whole.substr(down + row * 64, 32));
      EXPECT_EQ(half.substr(down + row * 64 + 32, 32), std::string(32, '\0'));
    }
  }
}

TEST(quantised_forms, shared_experts_of_another_format_stay_with_the_client) {
  raw_checkpoint raw = raw_checkpoint::of(k_oracles + "deepseek_v3_nvfp4");
  all_experts before = loaded(raw);
  for (const std::string& name : names_with(raw, "shared_experts.")) {
    if (!name.ends_with(".weight")) {
      raw.tensors.erase(name);
      continue;
    }
    raw_tensor& tensor = raw.tensors.at(name);
    tensor = {"BF16",
              {tensor.shape[0], tensor.shape[1] * 2},
              std::string(tensor.shape[0] * tensor.shape[1] * 4, '\0')};
  }
  const scratch_folder folder;
  const auto weights = opened(raw, folder);
  ASSERT_TRUE(weights);
  EXPECT_EQ(weights->shared_refusal(), "they are BF16 where the routed experts are nvfp4");
  EXPECT_EQ(weights->model().shared.count, 0u);
  EXPECT_EQ(weights->model().shared.intermediate_size, 64u);
  EXPECT_EQ(weights->model().fingerprint, fingerprint_of(weights->model()));
  const auto routed = load_all(*weights);
  ASSERT_TRUE(routed) << sentence(routed);
  std::erase_if(before, [](const auto& one) { return one.first.second >= 8; });
  EXPECT_TRUE(*routed == before);
}

TEST(quantised_forms, scales_by_row_stand_for_one_scale) {
  for (const char* family : {"qwen3_moe_fp8_ct", "qwen3_moe_fp8_modelopt"}) {
    for (const bool flat : {false, true}) {
      raw_checkpoint raw = raw_checkpoint::of(k_oracles + family);
      const all_experts before = loaded(raw);
      for (const std::string& name : names_with(raw, ".weight_scale")) {
        raw_tensor& scale = raw.tensors.at(name);
        const std::string codes = name.substr(0, name.size() - std::strlen("_scale"));
        const std::uint64_t rows = raw.tensors.at(codes).shape[0];
        const std::string one = scale.bytes;
        for (std::uint64_t row = 1; row < rows; ++row) scale.bytes += one;
        scale.shape = flat ? std::vector<std::uint64_t>{rows} : std::vector<std::uint64_t>{rows, 1};
      }
      EXPECT_TRUE(loaded(raw) == before) << family;
    }
  }
}

TEST(quantised_forms, block_scales_of_bf16_are_widened) {
  raw_checkpoint raw = raw_checkpoint::of(k_oracles + "deepseek_v3_fp8_block");
  raw_checkpoint wide = raw;
  for (const std::string& name : names_with(raw, ".weight_scale_inv")) {
    const std::string given = raw.tensors.at(name).bytes;
    std::string narrow;
    std::string widened;
    for (std::size_t at = 0; at < given.size(); at += 4) {  // the upper half of an f32
      narrow += given.substr(at + 2, 2);
      widened += std::string(2, '\0') + given.substr(at + 2, 2);
    }
    raw.tensors.at(name).type = "BF16";
    raw.tensors.at(name).bytes = narrow;
    wide.tensors.at(name).bytes = widened;
  }
  EXPECT_TRUE(loaded(raw) == loaded(wide));
}

TEST(quantised_forms, stacked_blocks_are_cut_by_expert) {
  raw_checkpoint raw = raw_checkpoint::of(k_oracles + "step3p7");
  raw.config["quantization_config"] = {{"quant_method", "fp8"}, {"weight_block_size", {128, 128}}};
  std::map<std::string, std::vector<float>> scales;
  for (const std::string part : {"gate_proj", "up_proj", "down_proj"}) {
    for (const std::string layer : {"1", "2"}) {
      const std::string name = "model.layers." + layer + ".moe." + part + ".weight";
      raw_tensor& tensor = raw.tensors.at(name);
      tensor.type = "F8_E4M3";
      tensor.bytes.resize(tensor.bytes.size() / 2);
      for (char& code : tensor.bytes) code = static_cast<char>(code & 0x77);
      for (int e = 0; e < 12; ++e) scales[part].push_back(static_cast<float>(e + 1));
      scales[part].resize(12);
      raw.tensors[name + "_scale_inv"] = {
          "F32", {12, 1, 1}, std::string(reinterpret_cast<const char*>(scales[part].data()), 48)};
    }
  }
  const scratch_folder folder;
  const auto weights = opened(raw, folder);
  ASSERT_TRUE(weights);
  EXPECT_EQ(weights->shared_refusal(), "pieces of 32 rows do not begin on a block");
  const auto all = load_all(*weights);
  ASSERT_TRUE(all) << sentence(all);
  const matrix_form wide = matrix_form_of({.quant = quant_kind::fp8_block}, 32, 64);
  for (std::uint32_t e = 0; e < 12; ++e) {
    const std::string& bytes = all->at({2, e});
    const std::string up = bytes.substr(wide.bytes, wide.bytes);
    EXPECT_EQ(up.substr(0, 2048),
              raw.tensors.at("model.layers.2.moe.up_proj.weight").bytes.substr(e * 2048, 2048));
    float scale = 0;
    std::memcpy(&scale, up.data() + wide.scales_offset, sizeof(scale));
    EXPECT_EQ(scale, static_cast<float>(e + 1));
  }
}

TEST(quantised_forms, damaged_scales_and_codes_are_refused_by_expert_and_name) {
  struct damage {
    const char* family;
    const char* ending;
    std::string bytes;  // put at the tensor's start
    const char* says;
  };
  const std::string nan("\x00\x00\xc0\x7f", 4);
  const std::string zero(4, '\0');
  for (const damage& one :
       {damage{"deepseek_v3_fp8_block", "experts.1.up_proj.weight_scale_inv", nan, "not finite"},
        damage{"deepseek_v3_fp8_block", "experts.1.up_proj.weight_scale_inv", zero, "a scale 0"},
        damage{"deepseek_v3_fp8_block", "experts.1.up_proj.weight", "\x7f", "not a number"},
        damage{"deepseek_v3_nvfp4", "experts.1.up_proj.weight_scale", "\x7f", "not finite"},
        damage{"deepseek_v3_nvfp4", "experts.1.up_proj.weight_scale_2", nan, "not finite"},
        damage{"deepseek_v3_nvfp4", "experts.1.up_proj.input_scale", nan, "not finite"},
        damage{"deepseek_v4_fp4", "experts.1.w3.scale", "\xff", "not finite"},
        damage{"gpt_oss_mxfp4", "mlp.experts.down_proj_scales", "\xff", "not finite"},
        damage{"gpt_oss_mxfp4", "mlp.experts.down_proj_bias", "\xff\xff", "not finite"},
        damage{"qwen3_moe_int4_g128", "experts.1.up_proj.weight_scale", "\xc0\x7f", "not finite"},
        damage{"qwen3_moe_int4_g128", "experts.1.up_proj.weight_shape", "\x07", "found 7 x"},
        damage{"qwen3_moe_fp8_ct", "experts.1.up_proj.weight_scale", nan, "not finite"}}) {
    raw_checkpoint raw = raw_checkpoint::of(k_oracles + one.family);
    std::string name;
    for (const std::string& found : names_with(raw, one.ending)) {
      if (found.ends_with(one.ending)) name = found;
    }
    ASSERT_FALSE(name.empty()) << one.ending;
    raw.tensors.at(name).bytes.replace(0, one.bytes.size(), one.bytes);
    const scratch_folder folder;
    const auto weights = opened(raw, folder);
    ASSERT_TRUE(weights);
    const auto all = load_all(*weights);
    ASSERT_FALSE(all) << name;
    EXPECT_EQ(all.error().why, reason::weight_mismatch) << name;
    EXPECT_NE(all.error().text.find(one.says), std::string::npos) << sentence(all);
    EXPECT_NE(all.error().text.find("expert"), std::string::npos) << sentence(all);
  }
}

}  // namespace
}  // namespace moetier::workers
