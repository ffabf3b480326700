#include "transport/client/source/step_credit.hpp"

#include <algorithm>

namespace moetier::client {
namespace {

constexpr std::uint64_t k_rate_max = 1'000'000'000;
constexpr std::uint64_t k_charge_max = 1'000'000;
constexpr std::int64_t k_token = 1'000'000'000;

}  // namespace

duration_ns step_credit::wait_for_step(std::uint64_t rate, time_ns now) noexcept {
  duration_ns wait = 0;
  if (rate == 0) {
    level_ = 0;
    filled_at_ = 0;
  } else {
    rate = std::min(rate, k_rate_max);
    const duration_ns gone =
        filled_at_ == 0 ? k_credit_saved : std::min(now - filled_at_, k_second);
    const auto full = static_cast<std::int64_t>(rate * k_credit_saved);
    level_ = std::min(level_ + static_cast<std::int64_t>(rate * gone), full);
    filled_at_ = now;
    if (level_ <= 0) wait = static_cast<duration_ns>(-level_) / rate + 1;
  }
  if (now < not_before_) wait = std::max(wait, not_before_ - now);
  return wait;
}

void step_credit::charge(std::uint64_t tokens) noexcept {
  if (filled_at_ == 0) return;  // no rate
  level_ -= static_cast<std::int64_t>(std::min(tokens, k_charge_max)) * k_token;
}

}  // namespace moetier::client
