#pragma once
// What a model family's config.json means, as data: which key holds the experts' inner size, how
// the router's weights are made, which layers are MoE layers. One small file per family in
// families/, read by one loader (config.cpp); a new family that brings no new method or activation
// is a file there and a row in config.cpp. Names of tensors are the workers' business.
// Thread: any (constants).

#include <cstdint>
#include <string_view>

#include "schemas/model/model_description.hpp"

namespace moetier {

enum class sparse_layers : std::uint8_t {
  all,            // every decoder layer
  by_sparse_step  // (l + 1) mod decoder_sparse_step = 0 and l not in mlp_only_layers
};

struct family {
  std::string_view model_type;
  std::string_view intermediate_key;  // the inner size of one expert
  // Routing method with norm_topk_prob on and off; equal where the family has no such key.
  routing_method normalised;
  routing_method raw;
  bool norm_topk_prob_default;
  sparse_layers sparse;
};

}  // namespace moetier
