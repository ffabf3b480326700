#pragma once
// What the tier knows of a model: the MoE part of its config.json, in plain values. Made by
// read_config() from a Hugging Face config.json; carried in placements, snapshots and manifests;
// read by everyone. It never holds weights. Thread: any (an immutable value).

#include <cstdint>
#include <string>
#include <vector>

#include "schemas/base/ids.hpp"
#include "schemas/model/activation.hpp"
#include "schemas/model/routing_rule.hpp"
#include "schemas/model/weight_format.hpp"

namespace moetier {

// Where the router weight multiplies: the expert's output, or (one expert a token) its input.
enum class weight_point : std::uint8_t { output = 0, input = 1 };

// Experts that every token visits. The tier holds them, when asked, as `count` pseudo-experts
// E..E+count-1 of size I on every worker; the last one is filled up with zeros.
struct shared_experts_rule {
  std::uint32_t intermediate_size = 0;  // of all together, as the checkpoint has it; 0 = none
  std::uint32_t count = 0;  // ceil(intermediate_size / I); 0 where the tier cannot hold them
  bool gated = false;       // weighted by sigmoid(shared_gate·x) instead of 1

  bool operator==(const shared_experts_rule&) const = default;
};

struct model_description {
  std::string model_type;               // "qwen3_moe", "mixtral"
  std::uint32_t hidden_size = 0;        // H: width of the rows that experts read and write
  std::uint32_t intermediate_size = 0;  // I of one projection of one expert
  std::uint32_t experts = 0;            // E per layer
  std::uint32_t top_k = 0;              // k
  std::uint32_t layers_total = 0;       // all decoder layers, dense ones too
  std::vector<layer_id> moe_layers;     // ascending
  routing_rule routing;
  activation_rule activation{};
  std::vector<float> limits{};  // clamp by MoE layer index (0 = none); empty: activation's own
  std::vector<float> shared_limits{};  // the same of the shared experts
  weight_format format{};
  bool expert_bias = false;  // FC1 and FC2 add a bias
  weight_point weight_at = weight_point::output;
  shared_experts_rule shared{};
  std::uint32_t router_width =
      0;  // columns of the router's input; differs from H for latent experts
  bool router_reads_hidden = true;  // false: router and experts read different vectors (gemma4)
  std::uint64_t fingerprint =
      0;  // first 64 bits of SHA-256 over the canonical text of the fields above

  // Columns of the router's logits.
  std::uint32_t columns() const noexcept { return experts + routing.identity_experts; }

  bool operator==(const model_description&) const = default;
};

// Position of `layer` in moe_layers, or -1.
int moe_index(const model_description& model, layer_id layer) noexcept;

// The activation's constants in one layer, routed or shared experts.
activation_constants constants_of(const model_description& model, std::size_t moe_index,
                                  bool shared) noexcept;

// The fingerprint of all other fields.
std::uint64_t fingerprint_of(const model_description& model);

}  // namespace moetier
