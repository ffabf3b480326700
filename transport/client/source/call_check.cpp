#include "transport/client/source/call_check.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "schemas/base/limits.hpp"

namespace moetier::client {
namespace {

constexpr const char* k_row_types = "f32, f16 or bf16";

// A row-major tensor [tokens, width] somewhere in the caller's memory.
expected<void> check_rows(const char* name, const void* data, dtype type, std::size_t pitch,
                          std::uint32_t tokens, std::uint32_t width) {
  if (!is_row_type(type)) return fail(reason::invalid_dtype, name, dtype_name(type), k_row_types);
  if (tokens == 0) return {};
  if (data == nullptr) {
    return fail(reason::invalid_argument, name, "null",
                fmt::format("a [{}, {}] tensor", tokens, width));
  }
  const std::size_t element = dtype_bytes(type);
  if (reinterpret_cast<std::uintptr_t>(data) % element != 0 || pitch % element != 0) {
    return fail(reason::invalid_argument, name, "misaligned",
                fmt::format("rows aligned to {} bytes", element));
  }
  if (tokens > 1 && pitch < width * element) {
    return fail(reason::invalid_argument, fmt::format("the row pitch of {}", name), pitch,
                fmt::format("{} bytes or more", width * element));
  }
  return {};
}

template <class T>
expected<void> check_picks(const char* name, std::span<T> values, std::uint32_t tokens,
                           std::uint32_t top_k) {
  const std::size_t due = std::size_t{tokens} * top_k;
  if (values.size() == due) return {};
  return fail(reason::invalid_shape, name, fmt::format("[{}]", values.size()),
              fmt::format("[{}, {}]", tokens, top_k));
}

template <class T>
expected<void> check_per_token(const char* name, std::span<T> values, std::uint32_t tokens) {
  if (values.empty() || values.size() == tokens) return {};
  return fail(reason::invalid_shape, name, fmt::format("[{}]", values.size()),
              fmt::format("[{}]", tokens));
}

expected<void> check_adapters(const layer_call& call, const call_bounds& bounds) {
  if (call.adapter_ids.empty()) return {};
  if (!bounds.lora) return fail(reason::lora_unsupported, "this tier runs none (moe.lora is off)");
  if (auto ok = check_per_token("adapter_ids", call.adapter_ids, call.tokens); !ok) return ok;
  if (call.tokens > bounds.tokens_per_chunk_max)
    return fail(reason::lora_multichunk, call.tokens, bounds.tokens_per_chunk_max);
  return {};
}

}  // namespace

bool is_row_type(dtype type) noexcept {
  return type == dtype::f32 || type == dtype::f16 || type == dtype::bf16;
}

expected<void> check_call(const layer_call& call, const call_bounds& bounds) {
  if (call.micro_batch >= bounds.micro_batches) {
    return fail(reason::invalid_argument, "micro_batch", call.micro_batch,
                fmt::format("0 to {}", bounds.micro_batches - 1));
  }
  if (call.repeat_count == 0 || call.repeat_count > k_repeat_count_max) {
    return fail(reason::invalid_argument, "repeat_count", call.repeat_count,
                fmt::format("1 to {}", k_repeat_count_max));
  }
  if (call.tokens > bounds.tokens_max) {
    return fail(reason::capacity, call.tokens, bounds.tokens_max);
  }
  if (auto ok = check_rows("hidden", call.hidden, call.hidden_type, call.hidden_pitch, call.tokens,
                           bounds.hidden_size);
      !ok) {
    return ok;
  }
  if (auto ok = check_per_token("token_ids", call.token_ids, call.tokens); !ok) return ok;
  if (auto ok = check_adapters(call, bounds); !ok) return ok;
  const bool has_logits = call.logits != nullptr;
  const bool has_picks = !call.ids.empty() || !call.weights.empty();
  if (has_logits && has_picks) {
    return fail(reason::invalid_argument, "the routing input", "logits and ids",
                "either logits or ids with weights");
  }
  if (has_logits) {
    return check_rows("logits", call.logits, call.logits_type, call.logits_pitch, call.tokens,
                      bounds.columns);
  }
  if ((call.tokens == 0 || bounds.needs_no_logits) && !has_picks) return {};
  if (!has_picks) {
    return fail(reason::invalid_argument, "the routing input", "absent",
                "either logits or ids with weights");
  }
  if (call.ids.empty() != call.weights.empty()) {
    return fail(reason::invalid_argument, "the routing input",
                call.weights.empty() ? "ids without weights" : "weights without ids",
                "either logits or ids with weights");
  }
  if (auto ok = check_picks("ids", call.ids, call.tokens, bounds.top_k); !ok) return ok;
  return check_picks("weights", call.weights, call.tokens, bounds.top_k);
}

expected<void> check_adapters_listed(const layer_call& call,
                                     std::span<const std::uint32_t> listed) {
  constexpr std::size_t k_ids_shown = 8;
  for (std::size_t row = 0; row < call.adapter_ids.size(); ++row) {
    const std::int32_t id = call.adapter_ids[row];
    if (id == -1) continue;
    if (id >= 0 && std::ranges::binary_search(listed, static_cast<std::uint32_t>(id))) continue;
    std::string ids;
    for (std::size_t i = 0; i < listed.size() && i < k_ids_shown; ++i)
      ids += fmt::format("{}{}", i == 0 ? "" : ", ", listed[i]);
    if (listed.size() > k_ids_shown) ids += ", ...";
    return fail(reason::lora_unsupported, fmt::format("row {} names adapter {}; loaded: {}", row,
                                                      id, ids.empty() ? "none" : ids));
  }
  return {};
}

expected<void> check_result(const layer_result& result, std::uint32_t tokens,
                            const call_bounds& bounds) {
  if (auto ok = check_rows("output", result.output, result.type, result.pitch, tokens,
                           bounds.hidden_size);
      !ok) {
    return ok;
  }
  if (!result.ids.empty()) {
    if (auto ok = check_picks("ids", result.ids, tokens, bounds.top_k); !ok) return ok;
  }
  if (auto ok = check_per_token("bad_rows", result.bad_rows, tokens); !ok) return ok;
  if (result.weights.empty()) return {};
  return check_picks("weights", result.weights, tokens, bounds.top_k);
}

expected<void> check_token_ids(const layer_call& call, bool hashed) {
  if (!hashed || !call.token_ids.empty() || !call.ids.empty() || call.tokens == 0) return {};
  return fail(reason::token_id_missing, call.layer.value);
}

error unknown_layer(layer_id layer, const model_description& model) {
  std::string served;
  // Runs of layers are shortened to "first to last", and the list to what fits a sentence.
  const auto& layers = model.moe_layers;
  for (std::size_t i = 0; i < layers.size() && served.size() < 48;) {
    std::size_t last = i;
    while (last + 1 < layers.size() && layers[last + 1].value == layers[last].value + 1) ++last;
    if (!served.empty()) served += ", ";
    served += last == i ? fmt::format("{}", layers[i].value)
                        : fmt::format("{} to {}", layers[i].value, layers[last].value);
    i = last + 1;
    if (served.size() >= 48 && i < layers.size()) served += ", ...";
  }
  return make_error(reason::unknown_layer, layer.value, served);
}

}  // namespace moetier::client
