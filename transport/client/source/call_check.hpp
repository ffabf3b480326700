#pragma once
// What makes a call or its result wrong, before anything is copied or sent: dtype, width, count,
// pointer, layer, position. Pure; every refusal is a typed error with the numbers. The routing
// inputs' values (ids, weights, logits) are checked by kernels/routing on the session's own copies.
// Thread: any.

#include <cstdint>
#include <string>

#include "schemas/base/error.hpp"
#include "transport/client/source/source_session.hpp"

namespace moetier::client {

// What the session was opened with, as far as a call must fit it.
struct call_bounds {
  std::uint32_t tokens_max = 0;
  std::uint32_t micro_batches = 0;
  std::uint32_t hidden_size = 0;
  std::uint32_t columns = 0;  // of the router's logits
  std::uint32_t top_k = 0;
  std::uint32_t tokens_per_chunk_max = 0;
  bool needs_no_logits = false;  // the tier computes them, or the method reads none
  bool lora = false;
};

expected<void> check_call(const layer_call& call, const call_bounds& bounds);
// Every adapter that a row names is one of these ids, which rise.
expected<void> check_adapters_listed(const layer_call& call, std::span<const std::uint32_t> listed);
// The checks of a layer that chooses experts by token id.
expected<void> check_token_ids(const layer_call& call, bool hashed);

expected<void> check_result(const layer_result& result, std::uint32_t tokens,
                            const call_bounds& bounds);

// reason::unknown_layer with the layers that are served.
error unknown_layer(layer_id layer, const model_description& model);

// "f32, f16 or bf16": the types that hidden, logits and output may have.
bool is_row_type(dtype type) noexcept;

}  // namespace moetier::client
