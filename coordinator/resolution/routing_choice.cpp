#include "coordinator/resolution/routing_choice.hpp"

#include "kernels/routing/routing_limits.hpp"

namespace moetier::coordinator {

resolution::routing_choice routing_choice_of(const model_description& model) {
  const kernels::routing_params params{
      .rule = model.routing, .experts = model.experts, .top_k = model.top_k};
  const kernels::kernel_choice choice = kernels::choose_kernel(params);
  return {.kernel = std::string(kernels::routing_kernel_name(choice.kernel)),
          .fallback_reason = std::string(choice.fallback_reason),
          .limit = std::string(choice.limit),
          .value = choice.value};
}

}  // namespace moetier::coordinator
