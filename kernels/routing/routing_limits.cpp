#include "kernels/routing/routing_limits.hpp"

#include <iterator>

#include <fmt/core.h>

namespace moetier::kernels {
namespace {

struct fused_limits {
  routing_kernel kernel;
  std::uint32_t experts;     // columns
  std::uint32_t top_k;       //
  std::uint32_t groups;      // n_group
  std::uint32_t width;       // experts of a group
  std::uint32_t candidates;  // experts of all kept groups
};

constexpr std::uint32_t k_any = ~0u;

constexpr fused_limits k_fused[] = {
    {routing_kernel::softmax_top_k, 512, 16, k_any, k_any, k_any},
    {routing_kernel::single_group, 1024, 32, k_any, k_any, k_any},
    {routing_kernel::grouped, 256, 8, 32, 32, 256},
};

// The fused kernel that has this method; generic if none has.
routing_kernel fused_kernel_of(const routing_rule& rule, bool hashed) noexcept {
  switch (rule.method) {
    case routing_method::default_softmax:
    case routing_method::renormalize:
    case routing_method::renormalize_naive: return routing_kernel::softmax_top_k;
    case routing_method::deepseek_v3:
      return rule.groups > 1 ? routing_kernel::grouped : routing_kernel::single_group;
    case routing_method::deepseek_v4:
      return hashed ? routing_kernel::generic : routing_kernel::single_group;
    case routing_method::minimax2:
    case routing_method::sqrt_softplus: return routing_kernel::single_group;
    default: return routing_kernel::generic;
  }
}

}  // namespace

std::string_view routing_kernel_name(routing_kernel kernel) noexcept {
  switch (kernel) {
    case routing_kernel::softmax_top_k: return "softmax_top_k";
    case routing_kernel::single_group: return "single_group";
    case routing_kernel::grouped: return "grouped";
    case routing_kernel::generic: return "generic";
  }
  return "generic";
}

kernel_choice choose_kernel(const routing_params& params, bool hashed) noexcept {
  const routing_kernel kernel = fused_kernel_of(params.rule, hashed);
  for (const fused_limits& most : k_fused) {
    if (most.kernel != kernel) continue;
    const std::uint32_t width = params.columns() / params.rule.groups;
    const struct {
      std::string_view name;
      std::uint32_t value;
      std::uint32_t most;
    } facts[] = {{"experts", params.columns(), most.experts},
                 {"top_k", params.top_k, most.top_k},
                 {"groups", params.rule.groups, most.groups},
                 {"group_width", width, most.width},
                 {"candidates", width * params.rule.groups_kept, most.candidates}};
    for (const auto& fact : facts) {
      if (fact.value > fact.most)
        return {routing_kernel::generic, "limit", fact.name, fact.value, fact.most};
    }
    return {.kernel = kernel};
  }
  return {.kernel = routing_kernel::generic, .fallback_reason = "no_fused_form"};
}

std::string to_string(const kernel_choice& choice) {
  const std::string_view name = routing_kernel_name(choice.kernel);
  if (choice.fallback_reason.empty()) return std::string(name);
  if (choice.limit.empty()) return fmt::format("{} ({})", name, choice.fallback_reason);
  return fmt::format("{} ({}: {} {} > {})", name, choice.fallback_reason, choice.limit,
                     choice.value, choice.most);
}

}  // namespace moetier::kernels
