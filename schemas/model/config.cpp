#include "schemas/model/config.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "schemas/base/limits.hpp"
#include "schemas/file/input_file.hpp"
#include "schemas/file/printable.hpp"
#include "schemas/file/strict_json.hpp"
#include "schemas/model/families/mixtral.hpp"
#include "schemas/model/families/qwen3_moe.hpp"

namespace moetier {
namespace {

using json = nlohmann::json;

constexpr std::array k_families{k_family_mixtral, k_family_qwen3_moe};

unexpected_error unsupported(std::string_view field, std::string_view value,
                             std::string_view supported) {
  return fail(reason::model_unsupported, field, value, supported);
}

// A value as a sentence shows it; nullptr is an absent key.
std::string shown(const json* value) {
  if (value == nullptr) return "missing";
  if (value->is_object()) return "an object";
  if (value->is_array()) return "a list";
  return printable(value->dump(-1, ' ', true, json::error_handler_t::replace));
}

// The fields of one configuration: the text model's part where the model is multimodal.
class fields final {
 public:
  fields(const json& values, std::string_view prefix) : values_(values), prefix_(prefix) {}

  std::string name(std::string_view key) const { return fmt::format("{}{}", prefix_, key); }

  // nullptr when the key is absent or null, which mean the same in these files.
  const json* find(std::string_view key) const {
    const auto at = values_.find(std::string(key));
    return at == values_.end() || at->is_null() ? nullptr : &*at;
  }

  // A whole number in least..most; `absent` where the key may be left out.
  expected<std::uint32_t> number(std::string_view key, std::uint32_t least, std::uint32_t most,
                                 std::optional<std::uint32_t> absent = {}) const {
    const json* const value = find(key);
    if (value == nullptr && absent) return *absent;
    if (value == nullptr || !value->is_number_unsigned() || value->get<std::uint64_t>() < least ||
        value->get<std::uint64_t>() > most)
      return unsupported(name(key), shown(value), fmt::format("{} to {}", least, most));
    return value->get<std::uint32_t>();
  }

  expected<bool> flag(std::string_view key, bool absent) const {
    const json* const value = find(key);
    if (value == nullptr) return absent;
    if (!value->is_boolean()) return unsupported(name(key), shown(value), "true or false");
    return value->get<bool>();
  }

 private:
  const json& values_;
  std::string_view prefix_;
};

const family* family_of(std::string_view model_type) {
  const auto at = std::find_if(k_families.begin(), k_families.end(),
                               [&](const family& f) { return f.model_type == model_type; });
  return at == k_families.end() ? nullptr : &*at;
}

std::string known_families() {
  std::vector<std::string_view> names;
  for (const family& f : k_families) names.push_back(f.model_type);
  return fmt::format("{}", fmt::join(names, ", "));
}

// Several names exist for the number of experts; those that stand must agree.
expected<std::uint32_t> experts_of(const fields& config) {
  constexpr std::array<std::string_view, 3> k_keys{"num_experts", "num_local_experts",
                                                   "n_routed_experts"};
  std::optional<std::pair<std::string_view, std::uint32_t>> found;
  for (const std::string_view key : k_keys) {
    if (config.find(key) == nullptr) continue;
    auto count = config.number(key, 1, k_experts_max);
    if (!count) return count;
    if (found && found->second != *count)
      return unsupported(config.name(key), fmt::format("{}", *count),
                         fmt::format("{} as {} says", found->second, config.name(found->first)));
    if (!found) found.emplace(key, *count);
  }
  if (!found) return unsupported(config.name(k_keys[0]), "missing", "the number of experts");
  return found->second;
}

expected<std::uint32_t> top_k_of(const fields& config, std::uint32_t experts) {
  constexpr std::string_view k_usual = "num_experts_per_tok";
  constexpr std::string_view k_other = "experts_per_token";
  const bool usual = config.find(k_usual) != nullptr || config.find(k_other) == nullptr;
  return config.number(usual ? k_usual : k_other, 1, std::min(experts, k_top_k_max));
}

// torch_dtype is the older name of dtype.
expected<dtype> stored_of(const fields& config) {
  constexpr std::string_view k_supported = "bfloat16, float16, float32";
  const json* const newer = config.find("dtype");
  const json* const older = config.find("torch_dtype");
  if (newer != nullptr && older != nullptr && *newer != *older)
    return unsupported(config.name("dtype"), shown(newer),
                       fmt::format("{} as {} says", shown(older), config.name("torch_dtype")));
  const json* const value = newer != nullptr ? newer : older;
  const std::string field =
      config.name(newer != nullptr || older == nullptr ? "dtype" : "torch_dtype");
  if (value == nullptr || !value->is_string()) return unsupported(field, shown(value), k_supported);
  const auto& text = value->get_ref<const std::string&>();
  if (text == "bfloat16") return dtype::bf16;
  if (text == "float16") return dtype::f16;
  if (text == "float32") return dtype::f32;
  return unsupported(field, shown(value), k_supported);
}

expected<void> check_not_quantised(const fields& config) {
  const json* const quantised = config.find("quantization_config");
  if (quantised == nullptr) return {};
  if (!quantised->is_object())
    return unsupported(config.name("quantization_config"), shown(quantised), "none");
  const fields scheme(*quantised, "");
  return unsupported(config.name("quantization_config.quant_method"),
                     shown(scheme.find("quant_method")), "no quantization_config");
}

expected<void> check_activation(const fields& config) {
  const json* const value = config.find("hidden_act");
  if (value == nullptr || (value->is_string() && *value == "silu")) return {};
  return unsupported(config.name("hidden_act"), shown(value), "silu");
}

expected<std::vector<layer_id>> moe_layers_of(const fields& config, const family& kin,
                                              std::uint32_t layers) {
  std::uint32_t step = 1;
  std::vector<bool> dense(layers, false);
  if (kin.sparse == sparse_layers::by_sparse_step) {
    auto given = config.number("decoder_sparse_step", 1, k_layers_max, 1);
    if (!given) return unexpected_error(std::move(given.error()));
    step = *given;
    if (const json* const list = config.find("mlp_only_layers"); list != nullptr) {
      const std::string allowed = fmt::format("a list of layers 0 to {}", layers - 1);
      if (!list->is_array())
        return unsupported(config.name("mlp_only_layers"), shown(list), allowed);
      for (const json& layer : *list) {
        if (!layer.is_number_unsigned() || layer.get<std::uint64_t>() >= layers)
          return unsupported(config.name("mlp_only_layers"),
                             fmt::format("a list with {}", shown(&layer)), allowed);
        dense[layer.get<std::size_t>()] = true;
      }
    }
  }
  std::vector<layer_id> sparse;
  for (std::uint32_t l = 0; l < layers; ++l) {
    if ((l + 1) % step == 0 && !dense[l]) sparse.emplace_back(static_cast<std::uint16_t>(l));
  }
  if (sparse.empty())
    return unsupported(config.name("decoder_sparse_step"), fmt::format("{}", step),
                       fmt::format("a step that leaves a MoE layer among {}", layers));
  return sparse;
}

template <class T>
bool take(expected<T> from, T& into, error& problem) {
  if (from) {
    into = std::move(*from);
  } else {
    problem = std::move(from.error());
  }
  return from.has_value();
}

}  // namespace

expected<model_description> read_config(const std::string& path) {
  auto text = input_file::read_text(path, k_config_bytes_max);
  if (!text) return unexpected_error(std::move(text.error()));
  return parse_config(*text, path);
}

expected<model_description> parse_config(std::string_view text, std::string_view name) {
  if (text.size() > k_config_bytes_max)
    return fail(reason::limit_exceeded, fmt::format("the size of {} in bytes", name), text.size(),
                k_config_bytes_max);
  auto document = parse_json(text, name, {.depth_max = 16});
  if (!document) return unexpected_error(std::move(document.error()));
  if (!document->is_object()) return fail(reason::file_malformed, name, "it is no JSON object");

  const fields whole(*document, "");
  const json* const part = whole.find("text_config");
  if (part != nullptr && !part->is_object())
    return unsupported("text_config", shown(part), "an object");
  const fields config = part != nullptr ? fields(*part, "text_config.") : whole;
  const json* const type = config.find("model_type");
  const family* const kin = type != nullptr && type->is_string()
                                ? family_of(type->get_ref<const std::string&>())
                                : nullptr;
  if (kin == nullptr) return unsupported(config.name("model_type"), shown(type), known_families());

  for (const fields& place : {whole, config}) {
    if (auto plain = check_not_quantised(place); !plain)
      return unexpected_error(std::move(plain.error()));
  }

  model_description model;
  model.model_type = kin->model_type;
  model.activation.kind = activation_kind::swiglu;
  error problem;
  bool norm = false;
  const bool read =
      take(config.number("hidden_size", 1, k_hidden_max), model.hidden_size, problem) &&
      take(config.number(kin->intermediate_key, 1, k_intermediate_max), model.intermediate_size,
           problem) &&
      take(experts_of(config), model.experts, problem) &&
      take(top_k_of(config, model.experts), model.top_k, problem) &&
      take(config.number("num_hidden_layers", 1, k_layers_max), model.layers_total, problem) &&
      take(moe_layers_of(config, *kin, model.layers_total), model.moe_layers, problem) &&
      take(config.flag("norm_topk_prob", kin->norm_topk_prob_default), norm, problem) &&
      take(stored_of(config), model.format.stored, problem);
  if (!read) return unexpected_error(std::move(problem));
  if (auto silu = check_activation(config); !silu) return unexpected_error(std::move(silu.error()));
  model.routing.method = norm ? kin->normalised : kin->raw;
  model.router_width = model.hidden_size;
  model.fingerprint = fingerprint_of(model);
  return model;
}

}  // namespace moetier
