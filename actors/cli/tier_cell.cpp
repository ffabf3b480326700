#include "actors/cli/tier_cell.hpp"

namespace moetier::cli {

std::optional<double> tier_cell::compute_us() const noexcept {
  if (stages_known) return split.compute;
  if (compute_alone) return compute_alone->p50;
  return std::nullopt;
}

std::optional<double> tier_cell::own_share_us() const noexcept {
  const auto compute = compute_us();
  return compute ? std::optional(whole_us() - *compute) : std::nullopt;
}

std::optional<double> tier_cell::own_share_echoes() const noexcept {
  const auto own = own_share_us();
  return own && echo.p50 > 0 ? std::optional(*own / echo.p50) : std::nullopt;
}

double tier_cell::tokens_per_s() const noexcept { return 1e6 * tokens / total.mean; }

double tier_cell::gb_per_s() const noexcept { return bytes / total.p50 / 1e3; }

std::optional<double> tier_cell::roofline_ratio() const noexcept {
  const auto compute = compute_us();
  return compute ? std::optional((*compute + echo.p50) / whole_us()) : std::nullopt;
}

}  // namespace moetier::cli
