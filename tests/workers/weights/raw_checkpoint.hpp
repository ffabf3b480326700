#pragma once
// A model directory as text and bytes that a test may bend before it writes it: config.json and the
// tensors of model.safetensors by name, with whatever types and shapes the test wants. It checks
// nothing. Thread: owner.

#include <cstring>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/schemas/file/scratch_folder.hpp"
#include "workers/weights/checkpoint.hpp"

namespace moetier::workers {

struct raw_tensor {
  std::string type;
  std::vector<std::uint64_t> shape;
  std::string bytes;
};

struct raw_checkpoint {
  nlohmann::json config;
  std::map<std::string, raw_tensor> tensors;

  static std::string read_file(const std::string& name) {
    std::ostringstream all;
    all << std::ifstream(name, std::ios::binary).rdbuf();
    return all.str();
  }

  static raw_checkpoint of(const std::string& folder) {
    raw_checkpoint raw;
    raw.config = nlohmann::json::parse(read_file(folder + "/config.json"));
    const std::string file = read_file(folder + "/model.safetensors");
    std::uint64_t length = 0;
    std::memcpy(&length, file.data(), sizeof(length));
    const auto header = nlohmann::json::parse(file.substr(8, length));
    for (const auto& [name, tensor] : header.items()) {
      if (name == "__metadata__") continue;
      const auto begin = tensor["data_offsets"][0].get<std::uint64_t>();
      const auto end = tensor["data_offsets"][1].get<std::uint64_t>();
      raw.tensors[name] = {tensor["dtype"], tensor["shape"].get<std::vector<std::uint64_t>>(),
                           file.substr(8 + length + begin, end - begin)};
    }
    return raw;
  }

  std::string safetensors() const {
    nlohmann::json header = nlohmann::json::object();
    std::string data;
    for (const auto& [name, tensor] : tensors) {
      header[name] = {{"dtype", tensor.type},
                      {"shape", tensor.shape},
                      {"data_offsets", {data.size(), data.size() + tensor.bytes.size()}}};
      data += tensor.bytes;
    }
    std::string text = header.dump();
    text.resize((text.size() + 7) / 8 * 8, ' ');
    const std::uint64_t length = text.size();
    return std::string(reinterpret_cast<const char*>(&length), sizeof(length)) + text + data;
  }

  void write(const scratch_folder& folder) const {
    folder.write("config.json", config.dump());
    folder.write("model.safetensors", safetensors());
  }
};

// The canonical bytes and biases of every expert, shared ones behind, by (layer, expert).
using all_experts = std::map<std::pair<std::uint32_t, std::uint32_t>, std::string>;

inline expected<all_experts> load_all(checkpoint& weights) {
  const model_description& model = weights.model();
  const std::uint32_t h = model.hidden_size;
  const std::uint32_t i = model.intermediate_size;
  std::vector<std::byte> up(matrix_form_of(model.format, i, h).bytes);
  std::vector<std::byte> gate(is_gated(model.activation.kind) ? up.size() : 0);
  std::vector<std::byte> down(matrix_form_of(model.format, h, i).bytes);
  std::vector<float> biases(model.expert_bias ? 2 * std::size_t{i} + h : 0);
  const std::size_t inner = biases.empty() ? 0 : i;
  const std::span b(biases);
  all_experts all;
  for (const layer_id layer : model.moe_layers) {
    for (std::uint32_t e = 0; e < model.experts + model.shared.count; ++e) {
      const auto done = weights.load(
          layer, expert_id(static_cast<std::uint16_t>(e)),
          {gate, up, down, b.first(inner), b.subspan(inner, inner), b.subspan(2 * inner)});
      if (!done) return unexpected_error(done.error());
      std::string& bytes = all[{layer.value, e}];
      for (const auto part : {std::span<const std::byte>(gate), std::span<const std::byte>(up),
                              std::span<const std::byte>(down), std::as_bytes(b)})
        bytes.append(reinterpret_cast<const char*>(part.data()), part.size());
    }
  }
  return all;
}

}  // namespace moetier::workers
