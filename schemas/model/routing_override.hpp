#pragma once
// What an operator says about routing in place of config.json: the settings model.routing.*, each
// one optional. Applied to a description before it is used anywhere, so the fingerprint covers it.
// Thread: any (values, pure functions).

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "schemas/base/error.hpp"
#include "schemas/model/model_description.hpp"

namespace moetier {

struct routing_override {
  std::optional<routing_method> method{};
  std::optional<bool> renormalise{};
  std::optional<float> scaling{};
  std::optional<float> epsilon{};
  std::optional<float> power{};
  std::optional<std::uint32_t> groups{};
  std::optional<std::uint32_t> groups_kept{};

  bool empty() const noexcept { return *this == routing_override{}; }
  bool operator==(const routing_override&) const = default;
};

// The model with these values, checked as a whole. A value that the method does not read is
// refused, but for one group and factor 1, which take a model's own away. `renormalise` turns
// renormalize_naive into default_softmax and back where no method is given, as norm_topk_prob does.
// reason::config_invalid names the setting.
expected<model_description> apply_routing(const routing_override& given, model_description model);

// What is wrong with a rule: which parameter, its value and what is allowed.
struct routing_flaw {
  std::string_view parameter;  // as the settings name it: "groups_kept"
  std::string value;
  std::string allowed;
};
// Nothing when the rule fits `experts` and `top_k`.
std::optional<routing_flaw> find_flaw(const routing_rule& rule, std::uint32_t experts,
                                      std::uint32_t top_k);

}  // namespace moetier
