#pragma once
// What the tier knows of a model: the MoE part of its config.json, in plain values. Made by
// read_config() from a Hugging Face config.json; carried in placements, snapshots and manifests;
// read by everyone. It never holds weights. Thread: any (an immutable value).

#include <cstdint>
#include <string>
#include <vector>

#include "schemas/base/dtype.hpp"
#include "schemas/base/ids.hpp"

namespace moetier {

// Numbers are those of the public routing-method enumeration; they travel in snapshots.
enum class routing_method : std::uint8_t {
  default_softmax = 0,
  renormalize = 1,
  renormalize_naive = 4,
  unspecified = 8
};

enum class activation_kind : std::uint8_t {
  swiglu = 0,
  geglu = 1,
  gelu = 2,
  relu = 3,
  silu = 4,
  relu2 = 5
};

struct model_description {
  std::string model_type;               // "qwen3_moe", "mixtral"
  std::uint32_t hidden_size = 0;        // H
  std::uint32_t intermediate_size = 0;  // I of one projection of one expert
  std::uint32_t experts = 0;            // E per layer
  std::uint32_t top_k = 0;              // k
  std::uint32_t layers_total = 0;       // all decoder layers, dense ones too
  std::vector<layer_id> moe_layers;     // ascending
  routing_method routing = routing_method::unspecified;
  activation_kind activation = activation_kind::swiglu;
  dtype stored = dtype::bf16;  // dtype of the expert tensors
  std::uint64_t fingerprint =
      0;  // first 64 bits of SHA-256 over the canonical text of the fields above

  bool operator==(const model_description&) const = default;
};

// Position of `layer` in moe_layers, or -1.
int moe_index(const model_description& model, layer_id layer) noexcept;

// The fingerprint of all other fields.
std::uint64_t fingerprint_of(const model_description& model);

}  // namespace moetier
