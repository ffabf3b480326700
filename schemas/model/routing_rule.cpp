#include "schemas/model/routing_rule.hpp"

#include <array>

namespace moetier {
namespace {

constexpr std::array<std::string_view, k_routing_methods> k_names{
    "default",       "renormalize",      "deepseek_v3",  "llama4",      "renormalize_naive",
    "minimax2",      "sigmoid_renorm",   "deepseek_v4",  "unspecified", "deepseek_v2",
    "sqrt_softplus", "sparse_mixer",     "static",       "round_robin", "softmax_group",
    "softmax_bias",  "softmax_bias_raw", "softmax_pnorm"};

}  // namespace

std::string_view routing_method_name(routing_method method) noexcept {
  const auto at = static_cast<std::size_t>(method);
  return at < k_names.size() ? k_names[at] : std::string_view();
}

routing_method routing_method_of(std::string_view name) noexcept {
  for (std::size_t i = 0; i < k_names.size(); ++i) {
    if (k_names[i] == name) return static_cast<routing_method>(i);
  }
  return routing_method::unspecified;
}

}  // namespace moetier
