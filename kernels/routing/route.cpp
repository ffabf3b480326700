#include "kernels/routing/route.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

#include "kernels/backend.hpp"
#include "kernels/routing/route_rows.hpp"
#include "kernels/routing/row_pass.hpp"
#include "kernels/routing/table_row.hpp"
#include "schemas/base/assert.hpp"

namespace moetier::kernels {
namespace {

// Why a row cannot be routed: the arguments of its reason's sentence behind the row's number.
struct row_fault {
  reason why = reason::none;
  std::int64_t given = 0;
  std::int64_t wanted = 0;
};

error error_of(const row_fault& fault, std::uint32_t row) {
  if (fault.why == reason::router_nonfinite) return make_error(fault.why, row, fault.given);
  return make_error(fault.why, row, fault.given, fault.wanted);
}

void widen(const std::byte* row, dtype type, std::uint32_t columns, float* out) noexcept {
  std::uint16_t bits[k_experts_max];
  switch (type) {
    case dtype::f32: std::memcpy(out, row, columns * sizeof(float)); return;
    case dtype::bf16:
      std::memcpy(bits, row, columns * sizeof(std::uint16_t));
      for (std::uint32_t e = 0; e < columns; ++e) out[e] = f32_from_bf16(bits[e]);
      return;
    default:
      std::memcpy(bits, row, columns * sizeof(std::uint16_t));
      for (std::uint32_t e = 0; e < columns; ++e) out[e] = f32_from_f16(bits[e]);
  }
}

bool by_table(const row_plan& plan) noexcept {
  return plan.form.weight == weight_kind::table || plan.layer.hashed();
}

row_plan plan_of(const row_kernels& rows, routing_kernel kernel, const routing_params& params,
                 const layer_routing& layer) noexcept {
  const method_form& form = form_of(params.rule.method);
  const std::uint32_t columns = params.columns();
  const bool paired =
      form.groups == group_kind::pairs && params.rule.groups_kept < params.rule.groups;
  return {.rows = rows,
          .scores = *rows.scores,
          .params = params,
          .layer = layer,
          .form = form,
          .fused = kernel != routing_kernel::generic,
          .wide = form.score != score_kind::none && (!layer.bias.empty() || paired),
          .padded = (columns + k_row_lanes - 1) / k_row_lanes * k_row_lanes};
}

row_fault route_row(const row_plan& plan, const route_input& input, std::uint32_t t, row_scratch& s,
                    float* weights) noexcept {
  const std::uint32_t k = plan.params.top_k;
  if (input.logits != nullptr) {
    const auto* at = static_cast<const std::byte*>(input.logits) + t * input.pitch_bytes;
    widen(at, input.type, plan.params.columns(), s.row);
    if (const std::uint32_t bad = plan.rows.find_bad(s.row, plan.padded); bad < plan.padded)
      return {.why = reason::router_nonfinite, .given = bad};
  }
  if (!by_table(plan)) {
    if (const std::uint32_t count = choose_experts(plan, s); count < k)
      return {.why = reason::router_starved, .given = count, .wanted = k};
    weigh_chosen(plan, s, weights);
    return {};
  }
  if (plan.form.weight != weight_kind::table) {
    const std::int32_t token = input.token_ids[t];
    if (token < 0 || static_cast<std::uint32_t>(token) >= plan.layer.table_rows)
      return {.why = reason::token_id_invalid,
              .given = token,
              .wanted = std::int64_t{plan.layer.table_rows} - 1};
  }
  table_ids(plan.params, plan.layer, input, t, s.chosen);
  if (plan.form.weight != weight_kind::table) {
    weigh_chosen(plan, s, weights);
  } else {
    const float* const row = input.logits != nullptr ? s.row : nullptr;
    table_weights(plan.params, plan.layer, t, s.chosen, row, weights);
  }
  return {};
}

void prepare(const row_plan& plan, row_scratch& s) noexcept {
  const std::uint32_t columns = plan.params.columns();
  std::fill(s.row + columns, s.row + plan.padded, -std::numeric_limits<float>::infinity());
  // Vectors read the chosen in eights.
  const std::uint32_t eights = (plan.params.top_k + 7) / 8 * 8;
  std::fill_n(s.values, eights, 0.0F);
  std::fill_n(s.powers, eights, 0.0F);
  if (!plan.wide) return;
  const std::vector<float>& bias = plan.layer.bias;
  std::copy(bias.begin(), bias.end(), s.bias);
  std::fill(s.bias + bias.size(), s.bias + plan.padded, 0.0F);
}

}  // namespace

const row_kernels& widest_row_kernels() noexcept {
  const cpu_features features = detect_cpu_features();
  return features.avx2 && features.fma ? k_row_kernels_avx2 : k_row_kernels_scalar;
}

expected<void> route_rows(const row_kernels& rows, routing_kernel kernel,
                          const routing_params& params, const layer_routing& layer,
                          const route_input& input, const route_output& output) {
  const std::uint32_t tokens = input.tokens;
  const std::size_t k = params.top_k;
  if (input.type != dtype::f32 && input.type != dtype::bf16 && input.type != dtype::f16)
    return fail(reason::invalid_dtype, "router logits", dtype_name(input.type), "f32, bf16, f16");
  const row_plan plan = plan_of(rows, kernel, params, layer);
  MOETIER_ASSERT(k >= 1 && k <= k_top_k_max && k <= params.columns());
  MOETIER_ASSERT(params.columns() <= k_experts_max);
  MOETIER_ASSERT(output.ids.size() == tokens * k && output.weights.size() == tokens * k);
  MOETIER_ASSERT(output.flags.empty() || output.flags.size() == tokens);
  MOETIER_ASSERT(tokens == 0 || input.logits != nullptr || plan.form.weight == weight_kind::table);
  if (layer.hashed() && plan.form.weight != weight_kind::table && input.token_ids.size() != tokens)
    return fail(reason::token_id_missing, input.layer);

  row_scratch scratch;
  prepare(plan, scratch);
  for (std::uint32_t t = 0; t < tokens; ++t) {
    std::int32_t* const ids = output.ids.data() + t * k;
    float* const weights = output.weights.data() + t * k;
    const row_fault fault = route_row(plan, input, t, scratch, weights);
    if (!output.flags.empty()) output.flags[t] = fault.why != reason::none ? 1 : 0;
    if (fault.why == reason::none) {
      std::copy_n(scratch.chosen, k, ids);
    } else if (output.flags.empty()) {
      return unexpected_error(error_of(fault, t));
    } else {
      std::fill_n(ids, k, -1);
      std::fill_n(weights, k, 0.0F);
    }
  }
  return {};
}

expected<void> route(const routing_params& params, const layer_routing& layer,
                     const route_input& input, std::span<std::int32_t> ids,
                     std::span<float> weights) {
  return route_rows(widest_row_kernels(), choose_kernel(params, layer.hashed()).kernel, params,
                    layer, input, {.ids = ids, .weights = weights});
}

expected<void> route_flagging(const routing_params& params, const layer_routing& layer,
                              const route_input& input, std::span<std::int32_t> ids,
                              std::span<float> weights, std::span<std::uint8_t> flags) {
  MOETIER_ASSERT(flags.size() == input.tokens);
  return route_rows(widest_row_kernels(), choose_kernel(params, layer.hashed()).kernel, params,
                    layer, input, {.ids = ids, .weights = weights, .flags = flags});
}

}  // namespace moetier::kernels
