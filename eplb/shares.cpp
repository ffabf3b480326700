#include "eplb/shares.hpp"

#include <numeric>
#include <utility>

#include <fmt/core.h>

#include "eplb/split/share_rounding.hpp"
#include "schemas/base/assert.hpp"
#include "schemas/base/limits.hpp"

namespace moetier::eplb {

shares shares::even(const placement& p, const std::vector<bool>& live, shares_revision revision) {
  return over_live(p, std::vector<std::vector<std::uint32_t>>(p.layers().size()), live, revision);
}

shares shares::over_live(const placement& p, const std::vector<std::vector<std::uint32_t>>& units,
                         const std::vector<bool>& live, shares_revision revision) {
  MOETIER_ASSERT(live.size() == p.spans().size() && units.size() == p.layers().size());
  std::vector<std::vector<std::uint32_t>> out(p.layers().size(),
                                              std::vector<std::uint32_t>(p.dense_slots(), 0));
  std::vector<std::uint32_t> hosts;
  std::vector<std::uint64_t> amounts;
  std::vector<std::uint32_t> rounded;
  for (std::size_t l = 0; l < p.layers().size(); ++l) {
    MOETIER_ASSERT(units[l].empty() || units[l].size() == p.dense_slots());
    for (std::uint32_t e = 0; e < p.experts(); ++e) {
      hosts.clear();
      amounts.clear();
      for (const std::uint32_t d : p.replicas(l, e)) {
        if (!live[p.span_of(d)]) continue;
        hosts.push_back(d);
        amounts.push_back(units[l].empty() ? 1 : units[l][d]);
      }
      if (hosts.empty()) continue;
      rounded.resize(hosts.size());
      round_shares(amounts, rounded);
      for (std::size_t i = 0; i < hosts.size(); ++i) out[l][hosts[i]] = rounded[i];
    }
  }
  auto made = from_units(p, std::move(out), revision);
  MOETIER_ASSERT(made.has_value());
  return std::move(*made);
}

expected<shares> shares::from_units(const placement& p,
                                    std::vector<std::vector<std::uint32_t>> units,
                                    shares_revision revision) {
  if (units.size() != p.layers().size()) {
    return fail(reason::placement_invalid, fmt::format("shares for {} layers; the placement has {}",
                                                       units.size(), p.layers().size()));
  }
  shares s;
  s.revision_ = revision;
  for (std::size_t l = 0; l < units.size(); ++l) {
    const auto layer = p.layers()[l].layer.value;
    if (units[l].size() != p.dense_slots()) {
      return fail(reason::placement_invalid,
                  fmt::format("layer {} has shares for {} slots; the workers have {}", layer,
                              units[l].size(), p.dense_slots()));
    }
    for (std::uint32_t d = 0; d < p.dense_slots(); ++d) {
      if (p.layers()[l].experts[d] < 0 && units[l][d] != 0) {
        return fail(reason::placement_invalid,
                    fmt::format("layer {} slot {} is empty but has a share", layer, d));
      }
    }
    std::vector<std::uint32_t> bounds;
    std::vector<std::uint32_t> start{0};
    for (std::uint32_t e = 0; e < p.experts(); ++e) {
      std::uint64_t sum = 0;
      for (const std::uint32_t d : p.replicas(l, e)) {
        sum += units[l][d];
        bounds.push_back(static_cast<std::uint32_t>(sum > k_shares_unit ? k_shares_unit + 1 : sum));
      }
      if (sum != 0 && sum != k_shares_unit) {
        return fail(reason::placement_invalid,
                    fmt::format("layer {} expert {}: shares sum to {}; they must sum to {}", layer,
                                e, sum, k_shares_unit));
      }
      start.push_back(static_cast<std::uint32_t>(bounds.size()));
    }
    s.bounds_.push_back(std::move(bounds));
    s.start_.push_back(std::move(start));
  }
  s.units_ = std::move(units);
  return s;
}

std::span<const std::uint32_t> shares::units(std::size_t layer_index) const noexcept {
  MOETIER_DEBUG_ASSERT(layer_index < units_.size());
  return units_[layer_index];
}

std::span<const std::uint32_t> shares::bounds(std::size_t layer_index,
                                              std::uint32_t expert) const noexcept {
  MOETIER_DEBUG_ASSERT(layer_index < units_.size());
  const auto& start = start_[layer_index];
  return {bounds_[layer_index].data() + start[expert], start[expert + 1] - start[expert]};
}

bool shares::has_live_replica(std::size_t layer_index, std::uint32_t expert) const noexcept {
  return bounds(layer_index, expert).back() == k_shares_unit;
}

bool shares::operator==(const shares& other) const noexcept {
  return revision_ == other.revision_ && units_ == other.units_;
}

}  // namespace moetier::eplb
