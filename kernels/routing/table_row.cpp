#include "kernels/routing/table_row.hpp"

#include <algorithm>
#include <limits>

namespace moetier::kernels {

void table_ids(const routing_params& params, const layer_routing& layer, const route_input& input,
               std::uint32_t t, std::uint16_t* ids) noexcept {
  const std::size_t k = params.top_k;
  if (params.rule.method == routing_method::round_robin) {
    for (std::size_t j = 0; j < k; ++j)
      ids[j] = static_cast<std::uint16_t>((t * k + j) % params.experts);
    return;
  }
  const bool fixed = params.rule.method == routing_method::static_table;
  const std::size_t at =
      fixed ? t % layer.table_rows : static_cast<std::size_t>(input.token_ids[t]);
  std::copy_n(layer.table.data() + at * k, k, ids);
}

void table_weights(const routing_params& params, const layer_routing& layer, std::uint32_t t,
                   const std::uint16_t* ids, const float* row, float* weights) noexcept {
  const std::size_t k = params.top_k;
  if (layer.table_weights.empty()) {
    std::fill_n(weights, k, 1.0F);
  } else {
    std::copy_n(layer.table_weights.data() + t % layer.table_rows * k, k, weights);
  }
  if (row == nullptr) return;
  for (std::size_t j = 0; j < k; ++j) {
    if (row[ids[j]] == -std::numeric_limits<float>::infinity()) weights[j] = 0;
  }
}

}  // namespace moetier::kernels
