// The same experts in another release form give the same canonical bytes: one tensor of all experts
// or one a projection, the library's names or the original ones.

#include "tests/workers/weights/raw_checkpoint.hpp"

namespace moetier::workers {
namespace {

const std::string k_oracles = std::string(MOETIER_SOURCE_DIR) + "/tests/data/oracles/";

all_experts loaded(const raw_checkpoint& raw) {
  const scratch_folder folder;
  raw.write(folder);
  auto weights = checkpoint::open(folder.path(), {.routers = true});
  EXPECT_TRUE(weights) << sentence(weights);
  if (!weights) return {};
  auto all = load_all(**weights);
  EXPECT_TRUE(all) << sentence(all);
  return all.value_or(all_experts());
}

// Cuts [E, out, in] into `pieces` matrices of equal rows for each expert, named by `name_of`.
template <class NameOf>
void split_tensor(raw_checkpoint& raw, const std::string& name, std::size_t pieces,
                  const NameOf& name_of) {
  const raw_tensor packed = raw.tensors.at(name);
  raw.tensors.erase(name);
  const std::uint64_t experts = packed.shape[0];
  const std::size_t bytes = packed.bytes.size() / experts / pieces;
  for (std::uint64_t n = 0; n < experts * pieces; ++n)
    raw.tensors[name_of(n / pieces, n % pieces)] = {packed.type,
                                                    {packed.shape[1] / pieces, packed.shape[2]},
                                                    packed.bytes.substr(n * bytes, bytes)};
}

void split_layer(raw_checkpoint& raw, const std::string& from, const std::string& into,
                 const std::array<const char*, 3>& names) {
  const auto name = [&](std::uint64_t e, std::size_t p) {
    return into + std::to_string(e) + "." + names[p] + ".weight";
  };
  split_tensor(raw, from + "gate_up_proj", 2, name);
  split_tensor(raw, from + "down_proj", 1,
               [&](std::uint64_t e, std::size_t) { return name(e, 2); });
}

void pack_layer(raw_checkpoint& raw, const std::string& under, std::uint64_t experts) {
  raw_tensor gate_up;
  raw_tensor down;
  for (std::uint64_t e = 0; e < experts; ++e) {
    for (const char* part : {"gate_proj", "up_proj", "down_proj"}) {
      const std::string name = under + std::to_string(e) + "." + part + ".weight";
      const raw_tensor one = raw.tensors.at(name);
      raw.tensors.erase(name);
      const bool is_down = std::string(part) == "down_proj";
      raw_tensor& all = is_down ? down : gate_up;
      all.type = one.type;
      all.shape = {experts, one.shape[0] * (is_down ? 1 : 2), one.shape[1]};
      all.bytes += one.bytes;
    }
  }
  raw.tensors[under + "gate_up_proj"] = gate_up;
  raw.tensors[under + "down_proj"] = down;
}

TEST(packing, packed_experts_split_are_the_same_bytes) {
  for (const auto& [family, stem] : {std::pair{"qwen3_5_moe", "model.language_model.layers."},
                                     std::pair{"qwen4_exp", "model.language_model.layers."},
                                     std::pair{"mistral4", "model.layers."}}) {
    raw_checkpoint raw = raw_checkpoint::of(k_oracles + family);
    const all_experts before = loaded(raw);
    ASSERT_FALSE(before.empty());
    for (const char* layer : {"0", "1"}) {
      const std::string under = std::string(stem) + layer + ".mlp.experts.";
      split_layer(raw, under, under, {"gate_proj", "up_proj", "down_proj"});
    }
    EXPECT_TRUE(loaded(raw) == before) << family;
  }
}

TEST(packing, split_experts_packed_are_the_same_bytes) {
  for (const char* family : {"deepseek_v3", "qwen3_moe", "qwen2_moe"}) {
    raw_checkpoint raw = raw_checkpoint::of(k_oracles + family);
    const all_experts before = loaded(raw);
    ASSERT_FALSE(before.empty());
    for (const char* layer : {"0", "1", "2"}) {
      const std::string under = std::string("model.layers.") + layer + ".mlp.experts.";
      if (raw.tensors.contains(under + "0.up_proj.weight")) pack_layer(raw, under, 16);
    }
    EXPECT_TRUE(loaded(raw) == before) << family;
  }
}

TEST(packing, mistral_4_reads_the_original_formats_names_too) {
  raw_checkpoint raw = raw_checkpoint::of(k_oracles + "mistral4");
  const all_experts before = loaded(raw);
  for (const std::string layer : {"0", "1"}) {
    const std::string old = "model.layers." + layer + ".mlp.";
    const std::string now = "layers." + layer + ".";
    split_layer(raw, old + "experts.", now + "experts.", {"w1", "w3", "w2"});
    const std::vector<std::pair<std::string, std::string>> names{
        {"gate.weight", "gate.weight"},
        {"shared_experts.gate_proj.weight", "shared_experts.w1.weight"},
        {"shared_experts.up_proj.weight", "shared_experts.w3.weight"},
        {"shared_experts.down_proj.weight", "shared_experts.w2.weight"}};
    for (const auto& [from, into] : names) {
      raw.tensors[now + into] = raw.tensors.at(old + from);
      raw.tensors.erase(old + from);
    }
  }
  EXPECT_TRUE(loaded(raw) == before);
}

// Gate and up that alternate are not two halves: read the wrong way they would be other bytes.
TEST(packing, interleaved_columns_are_not_halves) {
  raw_checkpoint raw = raw_checkpoint::of(k_oracles + "gpt_oss");
  const all_experts before = loaded(raw);
  for (const char* layer : {"0", "1"}) {
    raw_tensor& both =
        raw.tensors.at(std::string("model.layers.") + layer + ".mlp.experts.gate_up_proj");
    const std::string halves = both.bytes;
    const std::size_t columns = both.shape[2];
    for (std::size_t n = 0; n < halves.size() / 2; ++n) {
      const std::size_t c = n % columns;
      const std::size_t from = n - c + (c % 2 == 0 ? c / 2 : columns / 2 + c / 2);
      both.bytes.replace(2 * n, 2, halves, 2 * from, 2);
    }
  }
  EXPECT_FALSE(loaded(raw) == before);
}

TEST(packing, both_forms_at_once_are_refused) {
  raw_checkpoint raw = raw_checkpoint::of(k_oracles + "qwen3_5_moe");
  const std::string under = "model.language_model.layers.0.mlp.experts.";
  raw.tensors[under + "3.up_proj.weight"] = {"BF16", {32, 64}, std::string(4096, 'x')};
  const scratch_folder folder;
  raw.write(folder);
  EXPECT_EQ(sentence(checkpoint::open(folder.path())),
            "weights: layer 0 model.language_model.layers.0.mlp.experts.3.up_proj.weight: found a "
            "tensor, expected none of this name");
}

}  // namespace
}  // namespace moetier::workers
