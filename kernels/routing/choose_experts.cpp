#include <algorithm>
#include <limits>

#include "kernels/routing/row_pass.hpp"

namespace moetier::kernels {
namespace {

constexpr float k_none = -std::numeric_limits<float>::infinity();

std::uint32_t whole_lanes(std::uint32_t count) noexcept {
  return (count + k_row_lanes - 1) / k_row_lanes * k_row_lanes;
}

// The scores of all columns, and their keys.
void score_row(const row_plan& plan, row_scratch& s) noexcept {
  switch (plan.form.score) {
    case score_kind::sigmoid:
      return plan.scores.sigmoid(s.row, s.bias, plan.padded, s.scores, s.keys);
    case score_kind::root_softplus:
      return plan.scores.root_softplus(s.row, s.bias, plan.padded, s.scores, s.keys);
    case score_kind::softmax:
      return plan.scores.softmax(s.row, s.bias, plan.padded, s.largest, s.sum, s.scores, s.keys);
    case score_kind::none: return;
  }
}

void score_groups(const row_plan& plan, const float* scored, std::uint32_t width,
                  float* sums) noexcept {
  const std::uint32_t groups = plan.params.rule.groups;
  if (plan.form.groups == group_kind::pairs)
    return plan.rows.group_pairs(scored, width, groups, sums);
  for (std::uint32_t g = 0; g < groups; ++g)
    sums[g] =
        *std::max_element(scored + std::size_t{g} * width, scored + std::size_t{g + 1} * width);
}

}  // namespace

void drop_groups(const row_plan& plan, const float* scored, float* keys, row_scratch& s) noexcept {
  const routing_rule& rule = plan.params.rule;
  const std::uint32_t width = plan.params.columns() / rule.groups;
  const std::uint32_t padded = whole_lanes(rule.groups);
  alignas(32) float sums[k_experts_max];
  score_groups(plan, scored, width, sums);
  std::fill(sums + rule.groups, sums + padded, k_none);
  if (rule.groups <= k_row_lanes)
    return plan.rows.drop_groups(sums, rule.groups, rule.groups_kept, width, keys);
  // A group at -inf holds nothing to choose, so it matters not that it is never among the best.
  const std::uint32_t kept = choose_best(plan, sums, padded, rule.groups_kept, s);
  std::fill_n(sums, rule.groups, 0.0F);
  for (std::uint32_t i = 0; i < kept; ++i) sums[s.chosen[i]] = 1.0F;
  for (std::uint32_t g = 0; g < rule.groups; ++g) {
    if (sums[g] == 0) std::fill_n(keys + std::size_t{g} * width, width, k_none);
  }
}

std::uint32_t choose_experts(const row_plan& plan, row_scratch& s) noexcept {
  const routing_rule& rule = plan.params.rule;
  if (plan.form.score == score_kind::softmax) {
    s.largest = plan.rows.largest(s.row, plan.padded);
    if (s.largest == k_none) return 0;
    s.sum = plan.scores.exp_sum(s.row, plan.padded, s.largest);
  }
  if (plan.wide) score_row(plan, s);
  // Without a bias scores grow with logits: comparing logits keeps apart what rounding would not.
  float* const keys = plan.wide && !plan.layer.bias.empty() ? s.keys : s.row;
  if (rule.groups_kept < rule.groups) drop_groups(plan, plan.wide ? s.keys : s.row, keys, s);
  return choose_best(plan, keys, plan.padded, plan.params.top_k, s);
}

}  // namespace moetier::kernels
