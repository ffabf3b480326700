#include <algorithm>
#include <limits>

#include "kernels/math/score_math.hpp"
#include "kernels/routing/row_pass.hpp"

namespace moetier::kernels {
namespace {

// The chosen experts' scores, from the row's where they are there, else from their logits: the
// same operations, so the same bits.
void score_chosen(const row_plan& plan, row_scratch& s) noexcept {
  const std::uint32_t k = plan.params.top_k;
  const float* const from = plan.wide ? s.scores : s.row;
  for (std::uint32_t j = 0; j < k; ++j) s.values[j] = from[s.chosen[j]];
  if (plan.wide) return;
  switch (plan.form.score) {
    case score_kind::sigmoid: return plan.scores.sigmoid_each(s.values, k);
    case score_kind::root_softplus: return plan.scores.root_softplus_each(s.values, k);
    case score_kind::softmax:
      plan.scores.exp_each(s.values, k, s.largest);
      for (std::uint32_t j = 0; j < k; ++j) s.values[j] /= s.sum;
      return;
    case score_kind::none: return;
  }
}

float sum_of(const float* values, std::uint32_t count) noexcept {
  float sum = 0;
  for (std::uint32_t j = 0; j < count; ++j) sum += values[j];
  return sum;
}

void divide(const row_plan& plan, const float* values, float by, float* weights) noexcept {
  const float scaling = plan.params.rule.scaling;
  if (by == 0) {  // all scores are 0
    std::fill_n(weights, plan.params.top_k, 0.0F);
    return;
  }
  for (std::uint32_t j = 0; j < plan.params.top_k; ++j) weights[j] = values[j] / by * scaling;
}

void weigh_chosen_softmax(const row_plan& plan, row_scratch& s, float* weights) noexcept {
  const std::uint32_t k = plan.params.top_k;
  plan.scores.exp_each(s.values, k, s.values[0]);
  const float sum = sum_of(s.values, k);
  for (std::uint32_t j = 0; j < k; ++j) weights[j] = s.values[j] / sum;
  if (plan.layer.expert_scale.empty()) return;
  for (std::uint32_t j = 0; j < k; ++j) weights[j] *= plan.layer.expert_scale[s.chosen[j]];
}

// p_j/(sum p^q)^(1/q) = exp(d_j - ln(sum exp(q·d))/q), d = logit less the largest: the softmax's
// own sum cancels.
void weigh_power_norm(const row_plan& plan, row_scratch& s, float* weights) noexcept {
  const std::uint32_t k = plan.params.top_k;
  const float power = plan.params.rule.power;
  if (power == 1.0F) return weigh_chosen_softmax(plan, s, weights);
  const float largest = s.values[0];
  for (std::uint32_t j = 0; j < k; ++j) s.powers[j] = (s.values[j] - largest) * power;
  plan.scores.exp_each(s.powers, k, 0.0F);
  const float norm = house_log(sum_of(s.powers, k)) / power;
  for (std::uint32_t j = 0; j < k; ++j) s.values[j] -= largest;
  plan.scores.exp_each(s.values, k, norm);
  std::copy_n(s.values, k, weights);
}

// Every position looks at what the earlier ones have left of the row.
void weigh_near_softmax(const row_plan& plan, row_scratch& s, float* weights) noexcept {
  const float reach = 2 * plan.params.rule.epsilon;
  for (std::uint32_t j = 0; j < plan.params.top_k; ++j) {
    weights[j] = 1.0F / plan.scores.near_sum(s.row, plan.padded, s.values[j], reach);
    s.row[s.chosen[j]] = -std::numeric_limits<float>::infinity();
  }
}

}  // namespace

void weigh_chosen(const row_plan& plan, row_scratch& s, float* weights) noexcept {
  const routing_rule& rule = plan.params.rule;
  const std::uint32_t k = plan.params.top_k;
  score_chosen(plan, s);
  switch (plan.form.weight) {
    case weight_kind::score: return divide(plan, s.values, 1.0F, weights);
    case weight_kind::share: {
      const bool shared = rule.renormalise || !plan.form.may_keep;
      return divide(plan, s.values, shared ? sum_of(s.values, k) + rule.epsilon : 1.0F, weights);
    }
    case weight_kind::floored_share:
      return divide(plan, s.values, std::max(sum_of(s.values, k), rule.epsilon), weights);
    case weight_kind::chosen_softmax: return weigh_chosen_softmax(plan, s, weights);
    case weight_kind::power_norm: return weigh_power_norm(plan, s, weights);
    case weight_kind::near_softmax: return weigh_near_softmax(plan, s, weights);
    case weight_kind::table:
    case weight_kind::none: return;
  }
}

}  // namespace moetier::kernels
