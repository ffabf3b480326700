// Which layers are MoE layers.

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "schemas/base/limits.hpp"
#include "schemas/model/config_rules.hpp"

namespace moetier {
namespace {

using json = nlohmann::json;
using layer_flags = std::vector<bool>;

constexpr std::string_view k_block_types = "layers_block_type";

// A list with an entry for each layer, or more where it goes on behind the last.
expected<const json*> list_by_layer(const config_fields& config, std::string_view key,
                                    std::uint32_t layers) {
  const json* const list = config.find(key);
  if (list == nullptr || !list->is_array() || list->size() < layers)
    return unsupported_field(config.name(key), shown_value(list),
                             fmt::format("a list of {} entries", layers));
  return list;
}

expected<layer_flags> by_names(const config_fields& config, std::string_view key,
                               std::span<const std::string_view> dense,
                               std::span<const std::string_view> sparse, std::uint32_t layers) {
  const auto list = list_by_layer(config, key, layers);
  if (!list) return unexpected_error(list.error());
  layer_flags flags(layers);
  for (std::uint32_t l = 0; l < layers; ++l) {
    const json& one = (**list)[l];
    const std::string text = one.is_string() ? one.get<std::string>() : std::string();
    flags[l] = std::ranges::find(sparse, text) != sparse.end();
    if (!flags[l] && !dense.empty() && std::ranges::find(dense, text) == dense.end())
      return unsupported_field(
          config.name(key), fmt::format("a list with {}", shown_value(&one)),
          fmt::format("{}, {}", fmt::join(dense, ", "), fmt::join(sparse, ", ")));
  }
  return flags;
}

expected<layer_flags> by_layer_types(const config_fields& config, std::uint32_t layers) {
  constexpr std::array<std::string_view, 1> k_dense{"dense"};
  constexpr std::array<std::string_view, 3> k_sparse{"sparse", "moe", "hash_moe"};
  return by_names(config, "mlp_layer_types", k_dense, k_sparse, layers);
}

// Layers named in a list, each below `layers`.
expected<layer_flags> named_layers(const config_fields& config, std::string_view key,
                                   std::uint32_t layers) {
  const json* const list = config.find(key);
  const std::string allowed = fmt::format("a list of layers 0 to {}", layers - 1);
  layer_flags flags(layers);
  if (list == nullptr) return flags;
  if (!list->is_array()) return unsupported_field(config.name(key), shown_value(list), allowed);
  for (const json& layer : *list) {
    if (!layer.is_number_unsigned() || layer.get<std::uint64_t>() >= layers)
      return unsupported_field(config.name(key), fmt::format("a list with {}", shown_value(&layer)),
                               allowed);
    flags[layer.get<std::size_t>()] = true;
  }
  return flags;
}

expected<layer_flags> sparse_step(const config_fields& config, std::uint32_t layers) {
  const auto step = config.count("decoder_sparse_step", {1, k_layers_max}, 1);
  if (!step) return unexpected_error(step.error());
  const auto dense = named_layers(config, "mlp_only_layers", layers);
  if (!dense) return dense;
  layer_flags flags(layers);
  for (std::uint32_t l = 0; l < layers; ++l) flags[l] = (l + 1) % *step == 0 && !(*dense)[l];
  if (std::ranges::find(flags, true) == flags.end())
    return unsupported_field(config.name("decoder_sparse_step"), fmt::format("{}", *step),
                             fmt::format("a step that leaves a MoE layer among {}", layers));
  return flags;
}

expected<layer_flags> after_dense(const config_fields& config, const family& kin,
                                  std::uint32_t layers) {
  constexpr std::string_view k_frequency = "moe_layer_freq";
  if (config.find("mlp_layer_types") != nullptr) return by_layer_types(config, layers);
  layer_flags flags(layers);
  const json* const frequency = config.find(k_frequency);
  if (frequency != nullptr && frequency->is_array()) {
    const auto list = list_by_layer(config, k_frequency, layers);
    if (!list) return unexpected_error(list.error());
    for (std::uint32_t l = 0; l < layers; ++l) {
      const json& one = (**list)[l];
      if (!one.is_number_unsigned() || one.get<std::uint64_t>() > 1)
        return unsupported_field(config.name(k_frequency),
                                 fmt::format("a list with {}", shown_value(&one)),
                                 "a number, or a list of 0 and 1");
      flags[l] = one == 1;
    }
    return flags;
  }
  const auto first = config.count(kin.dense_key, {0, layers});
  if (!first) return unexpected_error(first.error());
  const auto step = config.count(k_frequency, {1, k_layers_max}, 1);
  if (!step) return unexpected_error(step.error());
  for (std::uint32_t l = *first; l < layers; ++l) flags[l] = l % *step == 0;
  return flags;
}

expected<layer_flags> period(const config_fields& config, std::uint32_t layers) {
  const auto every = config.count("expert_layer_period", {1, k_layers_max});
  if (!every) return unexpected_error(every.error());
  const auto offset = config.count("expert_layer_offset", {0, *every - 1});
  if (!offset) return unexpected_error(offset.error());
  layer_flags flags(layers);
  for (std::uint32_t l = 0; l < layers; ++l) flags[l] = l % *every == *offset;
  return flags;
}

expected<layer_flags> interval(const config_fields& config, std::uint32_t layers) {
  const auto every = config.count("moe_layer_interval", {1, k_layers_max}, 1);
  if (!every) return unexpected_error(every.error());
  const auto start = config.count("moe_layer_start_index", {0, layers - 1}, 0);
  if (!start) return unexpected_error(start.error());
  constexpr std::string_view k_end = "moe_layer_end_index";
  std::uint32_t last = layers - 1;
  if (const json* const end = config.find(k_end); end != nullptr && *end != -1) {
    const auto given = config.count(k_end, {0, layers - 1});
    if (!given)
      return unsupported_field(config.name(k_end), shown_value(end),
                               fmt::format("-1 or 0 to {}", layers - 1));
    last = *given;
  }
  layer_flags flags(layers);
  for (std::uint32_t l = *start; l <= last; ++l) flags[l] = (l + 1) % *every == 0;
  return flags;
}

expected<layer_flags> listed(const config_fields& config, std::uint32_t layers) {
  if (config.find("moe_layers") != nullptr) return named_layers(config, "moe_layers", layers);
  const auto step = config.count("interleave_moe_layer_step", {1, k_layers_max});
  if (!step) return unexpected_error(step.error());
  layer_flags flags(layers);
  for (std::uint32_t l = *step - 1; l < layers; l += *step) flags[l] = true;
  return flags;
}

expected<layer_flags> pattern(const config_fields& config, std::uint32_t layers) {
  constexpr std::string_view k_letters = "hybrid_override_pattern";
  constexpr std::array<std::string_view, 1> k_moe{"moe"};
  const json* const letters = config.find(k_letters);
  if (letters == nullptr) return by_names(config, k_block_types, {}, k_moe, layers);
  const std::string text = letters->is_string() ? letters->get<std::string>() : std::string();
  if (text.size() != layers || text.find_first_not_of("ME*-") != std::string::npos)
    return unsupported_field(config.name(k_letters), shown_value(letters),
                             fmt::format("{} letters of M, E, * and -", layers));
  layer_flags flags(layers);
  for (std::uint32_t l = 0; l < layers; ++l) flags[l] = text[l] == 'E';
  return flags;
}

expected<layer_flags> enumerated(const config_fields& config, std::uint32_t layers) {
  constexpr std::string_view k_list = "moe_layers_enum";
  const json* const list = config.find(k_list);
  if (list == nullptr) return by_layer_types(config, layers);
  const auto refused = [&] {
    return unsupported_field(config.name(k_list), shown_value(list),
                             fmt::format("text like \"3,4,5\" of layers 0 to {}", layers - 1));
  };
  if (!list->is_string()) return refused();
  const auto& text = list->get_ref<const std::string&>();
  layer_flags flags(layers);
  const char* at = text.data();
  const char* const end = at + text.size();
  while (true) {
    std::uint32_t layer = 0;
    const auto [next, problem] = std::from_chars(at, end, layer);
    // Layers behind the last one predict further tokens.
    if (problem != std::errc{} || layer >= k_layers_max) return refused();
    if (layer < layers) flags[layer] = true;
    if (next == end) return flags;
    if (*next != ',') return refused();
    at = next + 1;
  }
}

expected<layer_flags> flags_of(const config_fields& config, const family& kin,
                               std::uint32_t layers) {
  switch (kin.layers) {
    case layer_rule::all: return layer_flags(layers, true);
    case layer_rule::sparse_step: return sparse_step(config, layers);
    case layer_rule::after_dense: return after_dense(config, kin, layers);
    case layer_rule::period: return period(config, layers);
    case layer_rule::interval: return interval(config, layers);
    case layer_rule::listed: return listed(config, layers);
    case layer_rule::pattern: return pattern(config, layers);
    case layer_rule::enumerated: return enumerated(config, layers);
  }
  return layer_flags(layers, true);
}

}  // namespace

expected<std::uint32_t> layers_total_of(const config_fields& config, const family& kin) {
  if (kin.layers == layer_rule::pattern && config.find(kin.layers_key) == nullptr) {
    // The transformers library leaves the number to the list of the layers' kinds.
    const json* const kinds = config.find(k_block_types);
    if (kinds != nullptr && kinds->is_array() && !kinds->empty() && kinds->size() <= k_layers_max)
      return static_cast<std::uint32_t>(kinds->size());
  }
  return config.count(kin.layers_key, {1, k_layers_max});
}

expected<std::vector<layer_id>> moe_layers_of(const config_fields& config, const family& kin,
                                              std::uint32_t layers) {
  const auto flags = flags_of(config, kin, layers);
  if (!flags) return unexpected_error(flags.error());
  std::vector<layer_id> sparse;
  for (std::uint32_t l = 0; l < layers; ++l) {
    if ((*flags)[l]) sparse.emplace_back(static_cast<std::uint16_t>(l));
  }
  if (sparse.empty())
    return unsupported_field(config.name(kin.layers_key), fmt::format("{}", layers),
                             "a model with MoE layers; none is one");
  return sparse;
}

expected<std::vector<bool>> hashed_layers_of(const config_fields& config, const family& kin,
                                             const model_description& model) {
  std::vector<bool> hashed;
  if (kin.hash_key.empty()) return hashed;
  const std::uint32_t layers = model.layers_total;
  if (config.find("mlp_layer_types") != nullptr) {
    constexpr std::array<std::string_view, 1> k_learned{"moe"};
    constexpr std::array<std::string_view, 1> k_hashed{"hash_moe"};
    const auto flags = by_names(config, "mlp_layer_types", k_learned, k_hashed, layers);
    if (!flags) return flags;
    for (const layer_id layer : model.moe_layers) hashed.push_back((*flags)[layer.value]);
    return hashed;
  }
  const auto first = config.count(kin.hash_key, {0, layers});
  if (!first) return unexpected_error(first.error());
  for (const layer_id layer : model.moe_layers) hashed.push_back(layer.value < *first);
  return hashed;
}

}  // namespace moetier
