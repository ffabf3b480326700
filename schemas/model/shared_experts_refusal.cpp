#include "schemas/model/shared_experts_refusal.hpp"

namespace moetier {

std::string_view shared_experts_refusal(const model_description& model) noexcept {
  if (model.shared.count != 0) return "";
  // gemma4 has such a block.
  if (model.shared.intermediate_size == 0) {
    return "the model has none; a dense block beside its experts is the client's";
  }
  if (model.router_width != model.hidden_size) {
    return "the client computes this model's: they read the hidden vector, its routed experts a "
           "latent one";
  }
  return "the client computes this model's: they are stored in another format than its routed "
         "experts";
}

}  // namespace moetier
