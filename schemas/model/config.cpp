#include "schemas/model/config.hpp"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "schemas/base/limits.hpp"
#include "schemas/file/input_file.hpp"
#include "schemas/file/strict_json.hpp"
#include "schemas/model/config_rules.hpp"

namespace moetier {
namespace {

using json = nlohmann::json;

std::string known_families() {
  std::vector<std::string_view> names;
  for (const family& f : families()) names.push_back(f.model_types.front());
  return fmt::format("{}", fmt::join(names, ", "));
}

const family* family_named(const json* type) {
  return type != nullptr && type->is_string() ? find_family(type->get_ref<const std::string&>())
                                              : nullptr;
}

// The text part's model_type counts; the whole's where it has none.
expected<const family*> family_of(const config_fields& whole, const config_fields& config) {
  const json* type = config.find("model_type");
  const bool inside = type != nullptr;
  if (!inside) type = whole.find("model_type");
  const family* const kin = family_named(type);
  if (kin == nullptr)
    return unsupported_field((inside ? config : whole).name("model_type"), shown_value(type),
                             known_families());
  return kin;
}

// Keys by which families and tools name the two counts.
constexpr std::array<std::string_view, 5> k_experts_keys{"num_experts", "num_local_experts",
                                                         "n_routed_experts", "moe_num_experts",
                                                         "ffn_config.moe_num_experts"};
constexpr std::array<std::string_view, 8> k_top_k_keys{"num_experts_per_tok",
                                                       "experts_per_token",
                                                       "num_experts_per_token",
                                                       "moe_topk",
                                                       "moe_top_k",
                                                       "moe_k",
                                                       "top_k_experts",
                                                       "ffn_config.moe_top_k"};

// One expert is meant to be a token's only one where its input is multiplied.
expected<std::uint32_t> top_k_of(const config_fields& config, const family& kin,
                                 std::uint32_t experts) {
  if (kin.top_k_fixed != 0) {
    if (kin.top_k_fixed > experts)
      return unsupported_field(config.name(kin.experts_key), fmt::format("{}", experts),
                               fmt::format("{} or more", kin.top_k_fixed));
    return kin.top_k_fixed;
  }
  const std::uint32_t most = kin.weight_at == weight_point::input ? 1 : k_top_k_max;
  const count_range range{1, std::min(experts, most)};
  return config.agreed(kin.top_k_key, k_top_k_keys, range, fmt::format("1 to {}", range.most));
}

expected<void> check_required(const config_fields& config, const family& kin) {
  for (const auto& [key, value] : kin.required) {
    if (key.empty()) continue;
    const json* const given = config.find(key);
    if (given != nullptr && json_text(*given) != value)
      return unsupported_field(config.name(key), shown_value(given), value);
  }
  return {};
}

// Experts of some models read and write a latent vector; the tier serves that width.
expected<void> read_widths(const config_fields& config, const family& kin, model_description& model,
                           stored_form& form) {
  error problem;
  if (!take(config.count(kin.hidden_key, {1, k_hidden_max}), model.router_width, problem))
    return unexpected_error(std::move(problem));
  model.hidden_size = model.router_width;
  if (kin.latent_key.empty() || config.find(kin.latent_key) == nullptr) return {};
  if (!take(config.count(kin.latent_key, {1, k_hidden_max}), model.hidden_size, problem))
    return unexpected_error(std::move(problem));
  if (model.hidden_size != model.router_width)
    form.shared_refusal = "they read the hidden vector where the routed experts read a latent one";
  return {};
}

expected<model_reading> read_fields(const config_fields& whole, const config_fields& config) {
  model_reading reading;
  model_description& model = reading.model;
  stored_form& form = reading.form;
  error problem;
  if (!take(family_of(whole, config), form.kin, problem))
    return unexpected_error(std::move(problem));
  const family& kin = *form.kin;
  model.model_type = kin.model_types.front();
  bool biased = true;
  const bool read =
      take(check_required(config, kin), problem) &&
      take(read_widths(config, kin, model, form), problem) &&
      take(config.count(kin.intermediate_key, {1, k_intermediate_max}), model.intermediate_size,
           problem) &&
      take(config.agreed(kin.experts_key, k_experts_keys, {1, k_experts_max},
                         "the number of experts"),
           model.experts, problem) &&
      take(top_k_of(config, kin, model.experts), model.top_k, problem) &&
      take(layers_total_of(config, kin), model.layers_total, problem) &&
      take(moe_layers_of(config, kin, model.layers_total), model.moe_layers, problem) &&
      take(hashed_layers_of(config, kin, model), form.hashed, problem) &&
      take(routing_of(config, kin, model), model.routing, problem) &&
      (kin.bias_flag.empty() || take(config.flag(kin.bias_flag, true), biased, problem)) &&
      take(read_activation(config, kin, model), problem) &&
      take(shared_experts_of(config, kin, model), model.shared, problem) &&
      take(read_format(whole, config, kin, model, form), problem);
  if (!read) return unexpected_error(std::move(problem));
  form.selection_bias = biased && !kin.names.selection_bias.empty();
  if (!form.shared_refusal.empty()) model.shared.count = 0;
  model.expert_bias = kin.expert_bias;
  model.weight_at = kin.weight_at;
  model.router_reads_hidden = kin.router_reads_hidden;
  model.fingerprint = fingerprint_of(model);
  return reading;
}

}  // namespace

expected<model_reading> read_config_and_form(const std::string& path) {
  auto text = input_file::read_text(path, k_config_bytes_max);
  if (!text) return unexpected_error(std::move(text.error()));
  return parse_config_and_form(*text, path);
}

expected<model_reading> parse_config_and_form(std::string_view text, std::string_view name) {
  if (text.size() > k_config_bytes_max)
    return fail(reason::limit_exceeded, fmt::format("the size of {} in bytes", name), text.size(),
                k_config_bytes_max);
  auto document = parse_json(text, name, {.depth_max = 16, .non_finite = true});
  if (!document) return unexpected_error(std::move(document.error()));
  if (!document->is_object()) return fail(reason::file_malformed, name, "it is no JSON object");

  const config_fields whole(*document, "");
  const json* const part = whole.find("text_config");
  if (part != nullptr && !part->is_object())
    return unsupported_field("text_config", shown_value(part), "an object");
  return read_fields(whole, part != nullptr ? config_fields(*part, "text_config.") : whole);
}

expected<model_description> read_config(const std::string& path) {
  auto reading = read_config_and_form(path);
  if (!reading) return unexpected_error(std::move(reading.error()));
  return std::move(reading->model);
}

expected<model_description> parse_config(std::string_view text, std::string_view name) {
  auto reading = parse_config_and_form(text, name);
  if (!reading) return unexpected_error(std::move(reading.error()));
  return std::move(reading->model);
}

}  // namespace moetier
