#include "coordinator/gateway/row_budget.hpp"

#include <fmt/core.h>

#include "schemas/base/time.hpp"

namespace moetier::coordinator {

error row_budget::full(std::uint64_t held, std::uint64_t more) const {
  error why = make_error(reason::no_credit,
                         fmt::format("calls at the gateway hold {} of {} bytes, this one takes {}",
                                     held, most_, more));
  why.retry_after_ns = 10 * k_millisecond;
  return why;
}

expected<row_budget::share> row_budget::take(std::uint64_t bytes) {
  const std::uint64_t before = held_.fetch_add(bytes, std::memory_order_relaxed);
  share taken(*this, bytes);  // gives them back if they are too many
  if (before > most_ || bytes > most_ - before) return unexpected_error(full(before, bytes));
  return taken;
}

expected<void> row_budget::room() const {
  const std::uint64_t held = this->held();
  if (held < most_) return {};
  return unexpected_error(full(held, 1));
}

}  // namespace moetier::coordinator
