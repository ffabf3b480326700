#include "coordinator/gateway/row_budget.hpp"

#include <fmt/core.h>

#include "schemas/base/no_credit.hpp"

namespace moetier::coordinator {

unexpected_error row_budget::full(std::uint64_t held, std::uint64_t more) const {
  return no_credit(
      fmt::format("calls at the gateway hold {} of {} bytes, this one takes {}", held, most_, more),
      10 * k_millisecond);
}

expected<row_budget::share> row_budget::take(std::uint64_t bytes) {
  const std::uint64_t before = held_.fetch_add(bytes, std::memory_order_relaxed);
  share taken(*this, bytes);  // gives them back if they are too many
  if (before > most_ || bytes > most_ - before) return full(before, bytes);
  return taken;
}

expected<void> row_budget::room() const {
  const std::uint64_t held = this->held();
  if (held < most_) return {};
  return full(held, 1);
}

}  // namespace moetier::coordinator
