#include <bitset>
#include <cmath>

#include "kernels/routing/route.hpp"
#include "schemas/base/assert.hpp"
#include "schemas/base/limits.hpp"

namespace moetier::kernels {

expected<void> check_given(std::uint32_t experts, std::uint32_t top_k, std::uint32_t tokens,
                           std::span<const std::int32_t> ids, std::span<float> weights) {
  MOETIER_ASSERT(experts >= 1 && experts <= k_experts_max);
  MOETIER_ASSERT(ids.size() == std::size_t{tokens} * top_k && weights.size() == ids.size());
  std::bitset<k_experts_max> seen;
  for (std::uint32_t t = 0; t < tokens; ++t) {
    const auto row_ids = ids.subspan(std::size_t{t} * top_k, top_k);
    const auto row_weights = weights.subspan(std::size_t{t} * top_k, top_k);
    for (std::uint32_t j = 0; j < top_k; ++j) {
      if (row_ids[j] == -1) {
        row_weights[j] = 0;
        continue;
      }
      if (row_ids[j] < 0 || static_cast<std::uint32_t>(row_ids[j]) >= experts)
        return fail(reason::invalid_expert, t, j, row_ids[j], experts - 1);
      const auto id = static_cast<std::size_t>(row_ids[j]);
      if (seen[id]) return fail(reason::duplicate_expert, t, row_ids[j]);
      seen[id] = true;
      if (!std::isfinite(row_weights[j])) return fail(reason::router_nonfinite, t, j);
    }
    for (const std::int32_t id : row_ids) {
      if (id >= 0) seen[static_cast<std::size_t>(id)] = false;
    }
  }
  return {};
}

}  // namespace moetier::kernels
