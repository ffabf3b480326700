#include <algorithm>
#include <bitset>
#include <cmath>

#include <fmt/core.h>

#include "kernels/routing/method_form.hpp"
#include "kernels/routing/route.hpp"
#include "schemas/base/limits.hpp"

namespace moetier::kernels {
namespace {

// "0 (default), 1 (renormalize), ...", all that can be asked for.
std::string known_methods() {
  std::string text;
  for (std::uint8_t m = 0; m < k_routing_methods; ++m) {
    const auto method = static_cast<routing_method>(m);
    if (method == routing_method::unspecified) continue;
    text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", m, routing_method_name(method));
  }
  return text;
}

expected<void> check_numbers(const routing_rule& rule) {
  const method_form& form = form_of(rule.method);
  if (form.scaled ? !(std::isfinite(rule.scaling) && rule.scaling > 0) : rule.scaling != 1)
    return fail(reason::config_invalid, "routing.scaling", rule.scaling,
                form.scaled ? "finite, above 0" : "1 with this method");
  const bool jitter = form.weight == weight_kind::near_softmax;
  if (!std::isfinite(rule.epsilon) || rule.epsilon < 0 || (jitter && rule.epsilon == 0))
    return fail(reason::config_invalid, "routing.epsilon", rule.epsilon,
                jitter ? "finite, above 0" : "finite, 0 or above");
  if (!std::isfinite(rule.power) || rule.power <= 0)
    return fail(reason::config_invalid, "routing.power", rule.power, "finite, above 0");
  return {};
}

expected<void> check_groups(const routing_params& params) {
  const routing_rule& rule = params.rule;
  const std::uint32_t columns = params.columns();
  if (form_of(rule.method).groups == group_kind::none) {
    if (rule.groups != 1)
      return fail(reason::config_invalid, "routing.groups", rule.groups, "1 with this method");
    return {};
  }
  if (rule.groups == 0 || columns % rule.groups != 0)
    return fail(reason::config_invalid, "routing.groups", rule.groups,
                fmt::format("divisors of {} experts", columns));
  if (rule.groups == 1) return {};  // whatever is kept of it
  if (rule.groups_kept == 0 || rule.groups_kept > rule.groups)
    return fail(reason::config_invalid, "routing.groups_kept", rule.groups_kept,
                fmt::format("1 to {}", rule.groups));
  const std::uint32_t candidates = columns / rule.groups * rule.groups_kept;
  if (params.top_k > candidates)
    return fail(reason::config_invalid, "routing.top_k", params.top_k,
                fmt::format("1 to {}, the experts of the groups kept", candidates));
  return {};
}

expected<void> check_length(std::string_view what, std::size_t given, std::size_t wanted) {
  if (given == 0 || given == wanted) return {};
  return fail(reason::weight_mismatch, what, fmt::format("{} values", given), wanted);
}

expected<void> check_finite(std::string_view what, const std::vector<float>& values) {
  const auto bad =
      std::find_if(values.begin(), values.end(), [](float v) { return !std::isfinite(v); });
  if (bad == values.end()) return {};
  return fail(reason::weight_mismatch, what, fmt::format("{} at {}", *bad, bad - values.begin()),
              "finite values");
}

expected<void> check_values(std::string_view what, const std::vector<float>& values,
                            std::size_t wanted) {
  if (auto ok = check_length(what, values.size(), wanted); !ok) return ok;
  return check_finite(what, values);
}

expected<void> check_table(const routing_params& params, const layer_routing& layer) {
  const std::size_t k = params.top_k;
  if (layer.table.size() != layer.table_rows * k || layer.table_rows == 0)
    return fail(reason::weight_mismatch, "routing table",
                fmt::format("{} ids in {} rows", layer.table.size(), layer.table_rows),
                fmt::format("{} ids a row", k));
  std::bitset<k_experts_max> seen;
  for (std::size_t r = 0; r < layer.table_rows; ++r) {
    const std::uint16_t* const row = layer.table.data() + r * k;
    for (std::size_t j = 0; j < k; ++j) {
      if (row[j] >= params.experts)
        return fail(reason::weight_mismatch, fmt::format("routing table row {}", r),
                    fmt::format("expert {}", row[j]), fmt::format("0 to {}", params.experts - 1));
      if (seen[row[j]])
        return fail(reason::weight_mismatch, fmt::format("routing table row {}", r),
                    fmt::format("expert {} twice", row[j]), "distinct experts");
      seen[row[j]] = true;
    }
    for (std::size_t j = 0; j < k; ++j) seen[row[j]] = false;
  }
  return check_values("routing table weights", layer.table_weights, layer.table.size());
}

// What a layer has that its method cannot use, by name; empty if nothing.
std::string_view useless_part(const method_form& form, routing_method method,
                              const layer_routing& layer) {
  const bool table = method == routing_method::static_table;
  if (!layer.bias.empty() && (!form.biased || layer.hashed())) return "bias";
  if (!layer.expert_scale.empty() && form.weight != weight_kind::chosen_softmax)
    return "expert scale";
  if (layer.hashed() && !table && method != routing_method::deepseek_v4) return "table";
  if (!layer.table_weights.empty() && !table) return "table weights";
  return {};
}

}  // namespace

expected<void> check_routing(const routing_params& params) {
  const routing_rule& rule = params.rule;
  if (static_cast<std::uint8_t>(rule.method) >= k_routing_methods)
    return fail(reason::model_unsupported, "routing.method", static_cast<int>(rule.method),
                known_methods());
  if (rule.method == routing_method::unspecified)
    return fail(reason::config_invalid, "routing.method", "unspecified", known_methods());
  if (params.experts == 0 || params.experts > k_experts_max)
    return fail(reason::config_invalid, "routing.experts", params.experts,
                fmt::format("1 to {}", k_experts_max));
  const bool identities = rule.method == routing_method::softmax_bias_raw;
  const std::uint32_t identities_max = identities ? k_experts_max - params.experts : 0;
  if (rule.identity_experts > identities_max)
    return fail(reason::config_invalid, "routing.identity_experts", rule.identity_experts,
                identities ? fmt::format("0 to {}", identities_max) : "0 with this method");
  const std::uint32_t top_k_max = std::min(params.columns(), k_top_k_max);
  if (params.top_k == 0 || params.top_k > top_k_max)
    return fail(reason::config_invalid, "routing.top_k", params.top_k,
                fmt::format("1 to {}", top_k_max));
  if (auto ok = check_numbers(rule); !ok) return ok;
  return check_groups(params);
}

expected<void> check_layer(const routing_params& params, const layer_routing& layer) {
  const routing_method method = params.rule.method;
  const std::string_view useless = useless_part(form_of(method), method, layer);
  if (!useless.empty())
    return fail(reason::config_invalid, "routing.method",
                fmt::format("{} in a layer with a {}", routing_method_name(method), useless),
                "a method that uses it");
  if (auto ok = check_values("selection bias", layer.bias, params.columns()); !ok) return ok;
  if (auto ok = check_values("expert scale", layer.expert_scale, params.experts); !ok) return ok;
  if (layer.hashed() || method == routing_method::static_table || layer.table_rows != 0)
    return check_table(params, layer);
  return {};
}

}  // namespace moetier::kernels
