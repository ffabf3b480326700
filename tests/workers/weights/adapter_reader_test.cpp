// Adapter directories that nobody trusts: what is whole is read to the bit, everything else is
// refused by key or tensor.

#include "workers/weights/adapter_reader.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "tests/schemas/file/scratch_folder.hpp"
#include "tests/workers/weights/naive_expert.hpp"
#include "tests/workers/weights/raw_checkpoint.hpp"
#include "tests/workers/weights/small_model.hpp"

namespace moetier::workers {
namespace {

// Of small_model: H 4, I 2, experts 0..2, MoE layers 1 and 3; rank 2 on layer 3's expert 1 and
// layer 1's expert 2. Element n of tensor t is t + n / 16.
struct small_adapter {
  raw_checkpoint files;  // its config is adapter_config.json

  static std::string name(int layer, int expert, const std::string& part, char which) {
    return "base_model.model.model.layers." + std::to_string(layer) + ".mlp.experts." +
           std::to_string(expert) + "." + part + ".lora_" + which + ".weight";
  }

  static raw_tensor floats(const std::vector<std::uint64_t>& shape, float first) {
    std::vector<float> values(shape[0] * shape[1]);
    for (std::size_t n = 0; n < values.size(); ++n)
      values[n] = first + static_cast<float>(n) / 16.0F;
    return {"F32", shape, {reinterpret_cast<const char*>(values.data()), 4 * values.size()}};
  }

  small_adapter() {
    files.config = {{"peft_type", "LORA"}, {"r", 2}, {"lora_alpha", 5}, {"bias", "none"}};
    float first = 1;
    for (const auto& [layer, expert] : {std::pair{1, 2}, {3, 1}}) {
      for (const std::string part : {"gate_proj", "up_proj", "down_proj"}) {
        const bool down = part == "down_proj";
        files.tensors[name(layer, expert, part, 'A')] = floats({2, down ? 2u : 4u}, first++);
        files.tensors[name(layer, expert, part, 'B')] = floats({down ? 4u : 2u, 2}, first++);
      }
    }
  }

  expected<adapter_ptr> read(std::size_t bytes_max = 1 << 20) const {
    scratch_folder model_folder;
    small_model().write(model_folder);
    const auto model = checkpoint::open(model_folder.path());
    scratch_folder folder;
    folder.write("adapter_config.json", files.config.dump());
    folder.write("adapter_model.safetensors", files.safetensors());
    return read_adapter(folder.path(), (*model)->model(), (*model)->naming(), bytes_max);
  }
};

// The sentence without the folder's name, or "read".
std::string refusal(const std::function<void(raw_checkpoint&)>& bend,
                    reason wanted = reason::lora_unsupported) {
  small_adapter a;
  bend(a.files);
  const auto got = a.read();
  if (!got) {
    EXPECT_EQ(got.error().why, wanted) << got.error().text;
    return got.error().text;
  }
  return "read";
}

TEST(adapter_reader, reads_every_matrix_to_its_place_with_the_scale) {
  const auto got = small_adapter().read();
  ASSERT_TRUE(got) << got.error().text;
  const adapter& a = **got;
  ASSERT_EQ(a.experts.size(), 2u);
  const kernels::lora_expert* one = a.find(0, 2);  // layer 1
  const kernels::lora_expert* two = a.find(1, 1);  // layer 3
  ASSERT_TRUE(one != nullptr && two != nullptr);
  EXPECT_EQ(one->rank, 2u);
  EXPECT_EQ(one->scale, 2.5F);
  float first = 1;
  for (const kernels::lora_expert* e : {one, two}) {
    for (const kernels::lora_pair& pair : {e->gate, e->up, e->down}) {
      const bool down = pair.a == e->down.a;
      for (std::size_t n = 0; n < (down ? 4u : 8u); ++n)
        EXPECT_EQ(pair.a[n], first + static_cast<float>(n) / 16.0F);
      ++first;
      for (std::size_t n = 0; n < (down ? 8u : 4u); ++n)
        EXPECT_EQ(pair.b[n], first + static_cast<float>(n) / 16.0F);
      ++first;
    }
  }
  EXPECT_EQ(a.find(1, 2), nullptr);
}

TEST(adapter_reader, refuses_keys_that_change_the_mathematics_by_name) {
  const auto with = [](const char* key, const nlohmann::json& value) {
    return refusal([&](raw_checkpoint& a) { a.config[key] = value; });
  };
  EXPECT_EQ(with("use_rslora", true), "adapters: use_rslora is true; supported: false");
  EXPECT_EQ(with("use_dora", true), "adapters: use_dora is true; supported: false");
  EXPECT_EQ(with("use_new_thing", 1), "adapters: use_new_thing is 1; supported: false");
  EXPECT_EQ(with("bias", "all"), "adapters: bias is \"all\"; supported: none");
  EXPECT_EQ(with("peft_type", "LOHA"), "adapters: peft_type is \"LOHA\"; supported: LORA");
  EXPECT_EQ(with("fan_in_fan_out", true), "adapters: fan_in_fan_out is true; supported: none");
  EXPECT_EQ(with("lora_bias", true), "adapters: lora_bias is true; supported: none");
  EXPECT_EQ(with("rank_pattern", {{"up_proj", 3}}),
            "adapters: rank_pattern is {\"up_proj\":3}; supported: none");
  EXPECT_EQ(with("alpha_pattern", {{"up_proj", 3}}),
            "adapters: alpha_pattern is {\"up_proj\":3}; supported: none");
  EXPECT_EQ(with("modules_to_save", {"lm_head"}),
            "adapters: modules_to_save is [\"lm_head\"]; supported: none");
  EXPECT_EQ(with("use_rslora", false), "read");
  EXPECT_EQ(with("rank_pattern", nlohmann::json::object()), "read");
  EXPECT_EQ(with("target_modules", {"up_proj"}), "read");
}

TEST(adapter_reader, refuses_ranks_and_scales_out_of_range) {
  const auto with = [](const char* key, const nlohmann::json& value) {
    return refusal([&](raw_checkpoint& a) { a.config[key] = value; });
  };
  EXPECT_EQ(with("r", 0), "adapters: r is 0; supported: 1 to 256");
  EXPECT_EQ(with("r", 257), "adapters: r is 257; supported: 1 to 256");
  EXPECT_EQ(with("r", -1), "adapters: r is -1; supported: 1 to 256");
  EXPECT_EQ(with("r", 2.5), "adapters: r is 2.5; supported: 1 to 256");
  EXPECT_EQ(with("r", nullptr), "adapters: r is null; supported: 1 to 256");
  EXPECT_EQ(with("lora_alpha", "8"), "adapters: lora_alpha is \"8\"; supported: a finite number");
  EXPECT_EQ(with("lora_alpha", 1e300),
            "adapters: lora_alpha is 1e+300; supported: a finite number");
  EXPECT_EQ(
      refusal([](raw_checkpoint& a) { a.config = nlohmann::json::array(); }, reason::file_malformed)
          .substr(0, 1),
      "/");
}

TEST(adapter_reader, refuses_tensors_that_the_tier_would_not_compute) {
  const auto surplus = [](const std::string& name) {
    return refusal([&](raw_checkpoint& a) { a.tensors[name] = small_adapter::floats({2, 4}, 0); });
  };
  const std::string only =
      "base_model.model.model.layers.LAYER.mlp.experts.EXPERT.up_proj.lora_A.weight and its like";
  EXPECT_EQ(surplus("base_model.model.model.layers.1.self_attn.q_proj.lora_A.weight"),
            "adapters: tensor base_model.model.model.layers.1.self_attn.q_proj.lora_A.weight is "
            "none of a routed expert; only " +
                only);
  for (const std::string& name :
       {small_adapter::name(1, 3, "up_proj", 'A'), small_adapter::name(0, 1, "up_proj", 'A'),
        small_adapter::name(4, 1, "up_proj", 'A'), small_adapter::name(1, 1, "up_proj", 'C'),
        small_adapter::name(1, 1, "side_proj", 'A'), std::string("model.layers.1.mlp.experts.1"),
        std::string("base_model.model.model.layers.01.mlp.experts.1.up_proj.lora_A.weight"),
        std::string(
            "base_model.model.model.layers.99999999999.mlp.experts.1.up_proj.lora_A.weight"),
        small_adapter::name(1, 1, "up_proj", 'A') + ".more"}) {
    EXPECT_NE(surplus(name).find("is none of a routed expert"), std::string::npos) << name;
  }
}

TEST(adapter_reader, refuses_experts_that_lack_a_matrix) {
  for (const std::string part : {"gate_proj", "up_proj", "down_proj"}) {
    for (const char which : {'A', 'B'}) {
      const std::string name = small_adapter::name(3, 1, part, which);
      const std::string said =
          refusal([&](raw_checkpoint& a) { a.tensors.erase(name); }, reason::weight_mismatch);
      EXPECT_NE(said.find("found no tensor, expected all projections of an expert that is touched"),
                std::string::npos)
          << name << ": " << said;
    }
  }
  EXPECT_NE(refusal([](raw_checkpoint& a) { a.tensors.clear(); }, reason::weight_mismatch)
                .find("found no tensors"),
            std::string::npos);
}

TEST(adapter_reader, refuses_shapes_types_and_values_that_are_wrong) {
  const std::string name = small_adapter::name(3, 1, "up_proj", 'A');
  const auto bent = [&](const raw_tensor& tensor) {
    return refusal([&](raw_checkpoint& a) { a.tensors[name] = tensor; }, reason::weight_mismatch);
  };
  const auto ends = [&](const std::string& text, const std::string& end) {
    return text.size() > end.size() && text.substr(text.size() - end.size()) == end;
  };
  EXPECT_TRUE(
      ends(bent(small_adapter::floats({3, 4}, 0)), "found F32 [3, 4], expected F32 [2, 4]"));
  EXPECT_TRUE(
      ends(bent(small_adapter::floats({4, 2}, 0)), "found F32 [4, 2], expected F32 [2, 4]"));
  EXPECT_TRUE(
      ends(bent({"I32", {2, 4}, std::string(32, '\0')}), "found I32 [2, 4], expected F32 [2, 4]"));
  EXPECT_TRUE(
      ends(bent({"F32", {8}, std::string(32, '\0')}), "found F32 [8], expected F32 [2, 4]"));
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
    raw_tensor tensor = small_adapter::floats({2, 4}, 0);
    std::memcpy(tensor.bytes.data() + 20, &bad, 4);
    EXPECT_TRUE(
        ends(bent(tensor), "found an element that is not finite at 5, expected finite numbers"));
  }
  EXPECT_EQ(refusal([&](raw_checkpoint& a) {
              a.tensors[name] = {"BF16", {2, 4}, std::string(16, '\x3f')};
            }),
            "read");
}

TEST(adapter_reader, reads_none_above_the_memory_it_is_given) {
  const std::size_t bytes = 4 * 2 * (8 + 4 + 8 + 4 + 4 + 8);
  EXPECT_TRUE(small_adapter().read(bytes));
  const auto refused = small_adapter().read(bytes - 1);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().text,
            fmt::format("the adapter needs {} bytes; {} are available", bytes, bytes - 1));
}

TEST(adapter_reader, refuses_files_that_are_absent_or_cut) {
  scratch_folder model_folder;
  small_model().write(model_folder);
  const auto model = checkpoint::open(model_folder.path());
  scratch_folder folder;
  const auto read = [&] {
    return read_adapter(folder.path(), (*model)->model(), (*model)->naming(), 1 << 20);
  };
  EXPECT_EQ(read().error().why, reason::file_unreadable);
  const small_adapter good;
  folder.write("adapter_config.json", good.files.config.dump());
  EXPECT_EQ(read().error().why, reason::file_unreadable);
  const std::string whole = good.files.safetensors();
  for (std::size_t n = 0; n < whole.size(); n += 7) {
    folder.write("adapter_model.safetensors", whole.substr(0, n));
    EXPECT_FALSE(read()) << n;
  }
  folder.write("adapter_model.safetensors", whole);
  EXPECT_TRUE(read());
}

}  // namespace
}  // namespace moetier::workers
