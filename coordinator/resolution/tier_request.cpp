#include "coordinator/resolution/tier_request.hpp"

#include <utility>

#include "coordinator/resolution/routing_choice.hpp"

namespace moetier::coordinator {

resolution_request tier_request(const model_description& model, const tier_wishes& wishes,
                                std::vector<resolution::named_environment> workers,
                                std::vector<std::uint32_t> slots) {
  resolution_request r;
  r.what = resolution::problem_of(model, wishes.answers, k_rows_sent);
  if (wishes.quantise) r.what.quant = *wishes.quantise;
  r.where.workers = static_cast<std::uint32_t>(workers.size());
  for (const std::uint32_t n : slots) r.where.num_slots += n;
  r.where.slots_per_worker = std::move(slots);
  r.where.moe_layers = static_cast<std::uint32_t>(model.moe_layers.size());
  r.where.eplb = r.where.num_slots > model.experts;
  r.where.lora_routed = wishes.lora;
  r.where.communication = wishes.communication;
  r.where.tokens_max = wishes.tokens_max;
  r.workers = std::move(workers);
  r.backend = wishes.backend;
  r.allow_degradation = wishes.allow_degradation;
  r.routing = routing_choice_of(model);
  return r;
}

}  // namespace moetier::coordinator
