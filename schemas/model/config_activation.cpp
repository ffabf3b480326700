// Activation, its constants and clamps, and the shared experts, from a configuration's keys.

#include <algorithm>

#include <fmt/core.h>

#include "schemas/base/limits.hpp"
#include "schemas/model/config_rules.hpp"

namespace moetier {
namespace {

using json = nlohmann::json;

constexpr std::string_view k_limit = "swiglu_limit";
constexpr std::string_view k_alpha = "swiglu_alpha";
constexpr std::uint32_t k_shared_pieces_max = 256;  // of one expert's size

expected<given_constants> constants_of_keys(const config_fields& config, const family& kin) {
  given_constants given = kin.constants;
  const bool clamped =
      kin.activation == activation_kind::swiglu || kin.activation == activation_kind::swiglu_bias;
  if (kin.limit_told && !config.stands(k_limit))
    return unsupported_field(config.name(k_limit), "missing", "a number above 0, or null");
  const auto limit = config.real(k_limit);
  if (!limit) return unexpected_error(limit.error());
  const auto alpha = config.real(k_alpha);
  if (!alpha) return unexpected_error(alpha.error());
  if (*alpha && kin.activation != activation_kind::swiglu_bias)
    return unsupported_field(config.name(k_alpha), fmt::format("{}", **alpha),
                             "none in this family");
  if (*limit && !clamped)
    return unsupported_field(config.name(k_limit), fmt::format("{}", **limit),
                             "none in this family");
  if (config.stands(k_limit)) given.limit = *limit;
  if (*alpha) given.alpha = *alpha;
  return given;
}

// Clamps of the MoE layers out of a list by layer, which may go on behind the last.
expected<std::vector<float>> limits_of(const config_fields& config, std::string_view key,
                                       const model_description& model) {
  std::vector<float> limits;
  if (key.empty()) return limits;
  if (!config.stands(key))
    return unsupported_field(config.name(key), "missing", "a list by layer, or null");
  const json* const list = config.find(key);
  if (list == nullptr) return limits;
  if (!list->is_array() || list->size() < model.layers_total)
    return unsupported_field(config.name(key), shown_value(list),
                             fmt::format("a list of {} entries", model.layers_total));
  for (const layer_id layer : model.moe_layers) {
    const json& one = (*list)[layer.value];
    const double limit = one.is_null() ? 0.0 : one.is_number() ? one.get<double>() : -1.0;
    if (!(limit >= 0.0 && limit < 1e30))
      return unsupported_field(config.name(key), fmt::format("a list with {}", shown_value(&one)),
                               "numbers from 0, or null");
    limits.push_back(static_cast<float>(limit));
  }
  return limits;
}

}  // namespace

expected<void> read_activation(const config_fields& config, const family& kin,
                               model_description& model) {
  error problem;
  given_constants given;
  const bool read =
      take(config.one_of(kin.activation_key, kin.activation_names, kin.activation_told), problem) &&
      take(constants_of_keys(config, kin), given, problem) &&
      take(check_activation(kin.activation, given), model.activation, problem) &&
      take(limits_of(config, kin.limits_key, model), model.limits, problem) &&
      take(limits_of(config, kin.shared_limits_key, model), model.shared_limits, problem);
  if (!read) return unexpected_error(std::move(problem));
  return {};
}

expected<shared_experts_rule> shared_experts_of(const config_fields& config, const family& kin,
                                                const model_description& model) {
  shared_experts_rule shared;
  if (kin.names.shared.empty()) return shared;
  const std::uint32_t inner = model.intermediate_size;
  const std::uint32_t most = std::min(k_intermediate_max, k_shared_pieces_max * inner);
  error problem;
  if (!kin.shared_size_key.empty()) {
    if (!take(config.count(kin.shared_size_key, {0, most}, 0), shared.intermediate_size, problem))
      return unexpected_error(std::move(problem));
  } else {
    std::uint32_t count = kin.shared_count_absent;
    if (!kin.shared_count_key.empty() &&
        !take(config.count(kin.shared_count_key, {0, most / inner}, kin.shared_count_absent), count,
              problem))
      return unexpected_error(std::move(problem));
    shared.intermediate_size = count * inner;
  }
  shared.count = (shared.intermediate_size + inner - 1) / inner;
  shared.gated = shared.count > 0 && !kin.names.shared_gate.empty();
  return shared;
}

}  // namespace moetier
