#pragma once
// One layer's router as a source half applies it to calls that bring neither logits nor ids
// (gate = tier): the matrix as the checkpoint stores it and the bias on its logits. Read by the
// coordinator, handed to its gateway and to fast clients, layer by layer, when first needed.
// Thread: any (an immutable value behind shared_ptr<const>).

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "schemas/base/dtype.hpp"
#include "schemas/base/error.hpp"

namespace moetier::client {

struct layer_router {
  dtype type = dtype::f32;  // f32, bf16 or f16
  std::uint32_t columns = 0;
  std::uint32_t width = 0;        // H
  std::vector<std::byte> matrix;  // [columns, width] row-major
  std::vector<float> bias;        // [columns] or empty
};

using layer_router_ptr = std::shared_ptr<const layer_router>;
// The router of a MoE layer index. May block.
using router_source = std::function<expected<layer_router_ptr>(std::size_t moe_index)>;

}  // namespace moetier::client
