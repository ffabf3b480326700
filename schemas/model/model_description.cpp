#include "schemas/model/model_description.hpp"

#include <algorithm>
#include <bit>
#include <iterator>

#include <fmt/format.h>

#include "schemas/base/checksum.hpp"

namespace moetier {

int moe_index(const model_description& model, layer_id layer) noexcept {
  const auto at = std::lower_bound(model.moe_layers.begin(), model.moe_layers.end(), layer);
  if (at == model.moe_layers.end() || *at != layer) return -1;
  return static_cast<int>(at - model.moe_layers.begin());
}

activation_constants constants_of(const model_description& model, std::size_t moe_index,
                                  bool shared) noexcept {
  activation_constants constants = model.activation.constants;
  const std::vector<float>& limits = shared ? model.shared_limits : model.limits;
  if (!limits.empty()) constants.limit = limits[moe_index];
  return constants;
}

std::uint64_t fingerprint_of(const model_description& m) {
  // Part of the protocol: another order, name or separator is another fingerprint everywhere.
  // Floats stand as the bits of their f32.
  const auto bits = [](float value) { return std::bit_cast<std::uint32_t>(value); };
  fmt::memory_buffer text;
  const auto put = [&](std::string_view name, auto value) {
    fmt::format_to(std::back_inserter(text), "{}={}\n", name, value);
  };
  const auto put_floats = [&](std::string_view name, const std::vector<float>& values) {
    fmt::format_to(std::back_inserter(text), "{}=", name);
    for (const float value : values) fmt::format_to(std::back_inserter(text), "{},", bits(value));
    text.push_back('\n');
  };
  put("moetier model", 2);
  put("model_type", m.model_type);
  put("hidden_size", m.hidden_size);
  put("intermediate_size", m.intermediate_size);
  put("experts", m.experts);
  put("top_k", m.top_k);
  put("layers_total", m.layers_total);
  put("routing", static_cast<unsigned>(m.routing.method));
  put("renormalise", m.routing.renormalise);
  put("scaling", bits(m.routing.scaling));
  put("epsilon", bits(m.routing.epsilon));
  put("power", bits(m.routing.power));
  put("groups", m.routing.groups);
  put("groups_kept", m.routing.groups_kept);
  put("identity_experts", m.routing.identity_experts);
  put("activation", static_cast<unsigned>(m.activation.kind));
  put("alpha", bits(m.activation.constants.alpha));
  put("beta", bits(m.activation.constants.beta));
  put("limit", bits(m.activation.constants.limit));
  put_floats("limits", m.limits);
  put_floats("shared_limits", m.shared_limits);
  put("quant", quant_name(m.format.quant));
  put("stored", dtype_name(m.format.stored));
  put("expert_bias", m.expert_bias);
  put("weight_at", static_cast<unsigned>(m.weight_at));
  put("shared_intermediate_size", m.shared.intermediate_size);
  put("shared_gated", m.shared.gated);
  put("router_width", m.router_width);
  put("router_reads_hidden", m.router_reads_hidden);
  fmt::format_to(std::back_inserter(text), "moe_layers=");
  for (const layer_id layer : m.moe_layers)
    fmt::format_to(std::back_inserter(text), "{},", layer.value);
  return first_64_bits(sha256(std::as_bytes(std::span(text.data(), text.size()))));
}

}  // namespace moetier
