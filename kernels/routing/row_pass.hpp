#pragma once
// One row's way through routing: scores and keys, groups dropped, experts chosen, weights made.
// route.cpp owns the scratch and calls these in that order, row after row; nothing here allocates
// or knows of rows beside its own. Thread: owner (of the scratch).

#include "kernels/routing/method_form.hpp"
#include "kernels/routing/route.hpp"
#include "kernels/routing/row_kernels.hpp"
#include "schemas/base/limits.hpp"

namespace moetier::kernels {

// What is the same for all rows of a call.
struct row_plan {
  const row_kernels& rows;
  const score_kernels& scores;
  const routing_params& params;
  const layer_routing& layer;
  const method_form& form;
  bool fused = false;        // select() instead of a sort
  bool wide = false;         // scores of all columns are needed to choose
  std::uint32_t padded = 0;  // columns, to whole lanes
};

static_assert(k_experts_max % k_row_lanes == 0);

// Left uninitialised on purpose: a call for one token must not clear 100 KiB. On cache lines, as
// the library copies logits in whole ones: split stores would hold up the loads behind them (138 or
// 211 ns a token by the chance of the stack's address).
struct row_scratch {
  alignas(64) float row[k_experts_max];       // logits
  alignas(64) float bias[k_experts_max];      // of the layer, or zeros; padded with zeros
  alignas(64) float scores[k_experts_max];    // where plan.wide
  alignas(64) float keys[k_experts_max];      // where plan.wide
  alignas(64) float values[k_top_k_max + 8];  // of the chosen
  alignas(64) float powers[k_top_k_max + 8];  // of them, where the norm has a power
  std::uint64_t packed[k_experts_max];
  std::uint16_t candidates[k_experts_max];
  std::uint16_t chosen[k_experts_max];  // best first
  float largest;                        // of the row and ...
  float sum;                            // ... of exp(x - largest), where the score is softmax
};

// keys or row -> chosen: the `most` largest that are not -inf, best first; returns how many.
std::uint32_t choose_best(const row_plan& plan, const float* keys, std::uint32_t padded,
                          std::uint32_t most, row_scratch& scratch) noexcept;

// Writes -inf over `keys` outside the best groups, by `scored`. Requires: more groups than kept.
void drop_groups(const row_plan& plan, const float* scored, float* keys,
                 row_scratch& scratch) noexcept;

// Scores, keys, groups, choice: row -> chosen. Returns how many of k could be chosen.
std::uint32_t choose_experts(const row_plan& plan, row_scratch& scratch) noexcept;

// row, scores, chosen -> weights [k].
void weigh_chosen(const row_plan& plan, row_scratch& scratch, float* weights) noexcept;

}  // namespace moetier::kernels
