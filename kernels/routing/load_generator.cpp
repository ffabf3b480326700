#include "kernels/routing/load_generator.hpp"

#include <algorithm>
#include <bit>
#include <numeric>

#include "kernels/routing/philox.hpp"
#include "schemas/base/assert.hpp"

namespace moetier::kernels {
namespace {

constexpr float k_chosen = 10.0F;
constexpr std::uint32_t k_rank_stream = 0xffffffffu;  // no source has this number

// ln x in one sequence of f64 operations, as a library's may differ in the last bit: x = 2^n m, m
// in [sqrt 1/2, sqrt 2), s = (m-1)/(m+1), ln m = 2 (s + s^3/3 + ... + s^23/23).
// Requires: x normal and positive.
double plain_log(double x) noexcept {
  const auto bits = std::bit_cast<std::uint64_t>(x);
  auto n = static_cast<std::int64_t>(bits >> 52) - 1023;
  double m = std::bit_cast<double>((bits & 0xfffffffffffffull) | 0x3ff0000000000000ull);
  if (m > 1.4142135623730951) {
    m *= 0.5;
    ++n;
  }
  const double s = (m - 1.0) / (m + 1.0);
  const double square = s * s;
  double sum = 0;
  for (int i = 23; i >= 1; i -= 2) sum = sum * square + 1.0 / i;
  return static_cast<double>(n) * 0.6931471805599453 + 2.0 * s * sum;
}

philox_key key_of(std::uint64_t seed) noexcept {
  return {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)};
}

// In (0, 1): 53 bits and a half.
double uniform_of(const philox_counter& words) noexcept {
  const std::uint64_t bits = (std::uint64_t{words[1]} << 32 | words[0]) >> 11;
  return (static_cast<double>(bits) + 0.5) * 0x1p-53;
}

}  // namespace

std::vector<std::uint16_t> visiting_order(std::uint32_t experts, std::uint32_t workers) {
  MOETIER_ASSERT(workers >= 1);
  const std::uint32_t each = experts / workers;
  const std::uint32_t longer = experts % workers;  // the first workers have one more
  std::vector<std::uint16_t> order;
  order.reserve(experts);
  for (std::uint32_t turn = 0; order.size() < experts; ++turn) {
    for (std::uint32_t w = 0; w < workers; ++w) {
      if (turn < each + (w < longer ? 1U : 0U))
        order.push_back(static_cast<std::uint16_t>(w * each + std::min(w, longer) + turn));
    }
  }
  return order;
}

balanced_load::balanced_load(const routing_params& params, std::uint32_t workers)
    : params_(params) {
  if (params.rule.groups == 1) order_ = visiting_order(params.experts, workers);
}

std::uint32_t balanced_load::target(std::uint32_t source, std::uint32_t t,
                                    std::uint32_t j) const noexcept {
  const std::uint64_t experts = params_.experts;
  if (!order_.empty()) {
    const std::uint64_t at = (std::uint64_t{t} * params_.top_k + j + source) % experts;
    return order_[at];
  }
  const routing_rule& rule = params_.rule;
  const std::uint64_t width = experts / rule.groups;
  const std::uint64_t u = std::uint64_t{t} + source;
  const std::uint32_t each = (params_.top_k + rule.groups_kept - 1) / rule.groups_kept;
  const std::uint64_t group = (u + j % rule.groups_kept) % rule.groups;
  const std::uint64_t place = (u / rule.groups * each + j / rule.groups_kept) % width;
  return static_cast<std::uint32_t>(group * width + place);
}

void balanced_load::fill(const load_rows& rows, std::span<float> logits) const noexcept {
  const std::size_t columns = params_.columns();
  MOETIER_ASSERT(logits.size() == rows.tokens * columns);
  std::fill(logits.begin(), logits.end(), -k_chosen);
  for (std::uint32_t t = 0; t < rows.tokens; ++t) {
    for (std::uint32_t j = 0; j < params_.top_k && j < params_.experts; ++j)
      logits[t * columns + target(rows.source, rows.first_token + t, j)] = k_chosen;
  }
}

zipf_load::zipf_load(std::uint32_t columns, double alpha, std::uint64_t seed)
    : seed_(seed), means_(columns) {
  std::vector<std::uint32_t> ranks(columns);
  std::iota(ranks.begin(), ranks.end(), 0U);
  for (std::uint32_t i = columns; i > 1; --i) {
    const philox_counter words = philox4x32({i, k_rank_stream, 0, 0}, key_of(seed));
    std::swap(ranks[i - 1], ranks[words[0] % i]);
  }
  for (std::uint32_t e = 0; e < columns; ++e) means_[e] = -alpha * plain_log(1.0 + ranks[e]);
}

void zipf_load::fill(const load_rows& rows, std::span<float> logits) const noexcept {
  const auto columns = static_cast<std::uint32_t>(means_.size());
  MOETIER_ASSERT(logits.size() == std::size_t{rows.tokens} * columns);
  std::size_t at = 0;
  for (std::uint32_t t = 0; t < rows.tokens; ++t) {
    for (std::uint32_t e = 0; e < columns; ++e) {
      const double u =
          uniform_of(philox4x32({rows.step, rows.source, rows.first_token + t, e}, key_of(seed_)));
      logits[at++] = static_cast<float>(means_[e] - plain_log(-plain_log(u)));
    }
  }
}

}  // namespace moetier::kernels
