#include "transport/client/source/opening.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "schemas/base/limits.hpp"
#include "schemas/model/shared_experts_refusal.hpp"

namespace moetier::client {
namespace {

std::uint32_t chunk_tokens(const source_session_options& options) noexcept {
  const std::uint32_t rows = options.rows_per_chunk_max;
  return rows == 0 ? options.tokens_max : std::min(rows, options.tokens_max);
}

bool reads_no_logits(const kernels::routing_params& routing) noexcept {
  return routing.rule.method == routing_method::static_table ||
         routing.rule.method == routing_method::round_robin;
}

call_shape call_shape_of(const source_session_options& options,
                         const transport::routing_snapshot& snapshot) noexcept {
  const model_description& model = snapshot.model;
  return {.tokens_max = options.tokens_max,
          .hidden_size = model.hidden_size,
          .experts = model.experts,
          .columns = model.columns(),
          .top_k = options.top_k,
          .shared = options.shared_experts ? snapshot.shared_experts : 0,
          .weight_at = model.weight_at,
          .mode = options.mode,
          .flags_bad_rows = options.flags_bad_rows,
          .gates = static_cast<bool>(options.router)};
}

expected<void> check_range(const char* name, std::uint64_t value, std::uint64_t least,
                           std::uint64_t most) {
  if (value >= least && value <= most) return {};
  return fail(reason::invalid_argument, name, value, fmt::format("{} to {}", least, most));
}

expected<void> check_options(const source_session_options& options,
                             const transport::routing_snapshot& snapshot) {
  const auto& model = snapshot.model;
  if (auto ok = check_range("tokens_max", options.tokens_max, 1, k_tokens_max); !ok) return ok;
  if (auto ok = check_range("micro_batches", options.micro_batches, 1, k_micro_batches_max); !ok) {
    return ok;
  }
  const std::uint32_t top_k_max = std::min(model.columns(), k_top_k_max);
  if (auto ok = check_range("top_k", options.top_k, 1, top_k_max); !ok) return ok;
  if (auto ok =
          check_range("the number of workers", snapshot.placement.spans().size(), 1, k_workers_max);
      !ok) {
    return ok;
  }
  for (const layer_routing& layer : snapshot.tables->layers) {
    if (!layer.hashed() || options.top_k == model.top_k) continue;
    return fail(reason::invalid_argument, "top_k", options.top_k,
                fmt::format("{}, as the model's token tables have it", model.top_k));
  }
  if (options.shared_experts && snapshot.shared_experts == 0) {
    const std::string_view why = shared_experts_refusal(model);
    return fail(reason::not_enabled,
                fmt::format("shared_experts tier ({})",
                            why.empty() ? "the workers of this tier do not hold them" : why));
  }
  if (options.router && (!model.router_reads_hidden || model.router_width != model.hidden_size)) {
    return fail(reason::not_enabled,
                "gate tier (this model's router reads another vector than its experts)");
  }
  if (options.mode == kernels::return_mode::exact && !snapshot.exact_allowed) {
    return fail(reason::not_enabled, "return_mode exact (the tier's backend is not row_invariant)");
  }
  return kernels::check_routing(snapshot.routing);
}

}  // namespace

expected<opening> plan_opening(const source_session_options& options,
                               const transport::routing_snapshot& snapshot) {
  if (auto ok = check_options(options, snapshot); !ok) return unexpected_error(ok.error());
  const call_shape call = call_shape_of(options, snapshot);
  const std::uint32_t tokens = chunk_tokens(options);
  // Where a token may need two rows, an exchange has room for both.
  const std::uint32_t rows = call.has_second_rows() ? 2 * tokens : tokens;
  const auto stride = static_cast<std::uint32_t>(
      transport::padded_stride(std::size_t{call.hidden_size} * sizeof(float)));
  const bool exact = options.mode == kernels::return_mode::exact;
  const std::uint32_t banks = std::max(2u, options.micro_batches);
  const bool logits_needed = !options.router && !reads_no_logits(snapshot.routing);
  return opening{.ticket = {.call = call,
                            .tokens_per_chunk_max = tokens,
                            .banks = banks,
                            .sums_early = options.micro_batches > 1},
                 .bounds = {.tokens_max = options.tokens_max,
                            .micro_batches = options.micro_batches,
                            .hidden_size = call.hidden_size,
                            .columns = call.columns,
                            .top_k = options.top_k,
                            .tokens_per_chunk_max = tokens,
                            .needs_no_logits = !logits_needed,
                            .lora = snapshot.lora},
                 .exchange = {.rows_max = rows,
                              .hidden_stride = stride,
                              .top_k = call.positions(),
                              .return_stride = stride,
                              .return_rows_max = exact ? rows * call.positions() : rows,
                              .banks = banks}};
}

}  // namespace moetier::client
