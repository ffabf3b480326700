#pragma once
// A small Qwen3-MoE model directory that a test may bend before it is written: H 4, I 2, 3 experts,
// top-2, layers 1 and 3 of 4 are MoE layers. Element n of expert e's projection p in layer l is
// 1000 l + 100 e + 10 p + n mod 10. Thread: owner.

#include <map>
#include <string>
#include <vector>

#include "schemas/safetensors/tensor_writer.hpp"
#include "tests/schemas/file/scratch_folder.hpp"

namespace moetier::workers {

struct small_tensor {
  dtype element = dtype::f32;
  std::vector<std::uint64_t> shape;
  std::vector<float> values;
};

struct small_model {
  std::string config =
      R"({"model_type": "qwen3_moe", "hidden_size": 4, "moe_intermediate_size": 2,)"
      R"( "num_experts": 3, "num_experts_per_tok": 2, "num_hidden_layers": 4,)"
      R"( "decoder_sparse_step": 2, "dtype": "float32"})";
  std::map<std::string, small_tensor> tensors;

  static std::string name(int layer, int expert, const std::string& part) {
    return "model.layers." + std::to_string(layer) + ".mlp.experts." + std::to_string(expert) +
           "." + part + ".weight";
  }
  static std::string router(int layer) {
    return "model.layers." + std::to_string(layer) + ".mlp.gate.weight";
  }

  small_model() {
    const std::vector<std::pair<std::string, std::vector<std::uint64_t>>> parts{
        {"gate_proj", {2, 4}}, {"up_proj", {2, 4}}, {"down_proj", {4, 2}}};
    for (const int layer : {1, 3}) {
      for (int expert = 0; expert < 3; ++expert) {
        for (std::size_t p = 0; p < parts.size(); ++p) {
          std::vector<float> values;
          for (int n = 0; n < 8; ++n)
            values.push_back(
                static_cast<float>(1000 * layer + 100 * expert + 10 * static_cast<int>(p) + n));
          tensors[name(layer, expert, parts[p].first)] = {dtype::f32, parts[p].second, values};
        }
      }
      tensors[router(layer)] = {dtype::f32, {3, 4}, std::vector<float>(12, 0.5F)};
    }
    tensors["model.embed_tokens.weight"] = {dtype::f32, {1}, {9.0F}};
  }

  void write(const scratch_folder& folder) const {
    folder.write("config.json", config);
    std::vector<tensor_to_write> list;
    for (const auto& [tensor_name, tensor] : tensors)
      list.push_back({tensor_name, tensor.element, tensor.shape,
                      std::as_bytes(std::span(tensor.values))
                          .first(tensor.values.size() * dtype_bytes(tensor.element))});
    ASSERT_TRUE(write_tensors(folder.file("model.safetensors"), list));
  }
};

}  // namespace moetier::workers
