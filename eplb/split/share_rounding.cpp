#include "eplb/split/share_rounding.hpp"

#include <algorithm>
#include <numeric>

#include "schemas/base/assert.hpp"
#include "schemas/base/limits.hpp"

namespace moetier::eplb {
namespace {

__extension__ using wide = unsigned __int128;

}  // namespace

void round_shares(std::span<const std::uint64_t> amounts, std::span<std::uint32_t> units) noexcept {
  MOETIER_ASSERT(amounts.size() == units.size() && !units.empty());
  std::uint64_t total = std::accumulate(amounts.begin(), amounts.end(), std::uint64_t{0});
  const bool even = total == 0;
  if (even) total = amounts.size();
  const auto product = [&](std::size_t i) { return wide{even ? 1 : amounts[i]} * k_shares_unit; };
  std::uint32_t left = k_shares_unit;
  for (std::size_t i = 0; i < units.size(); ++i) {
    units[i] = static_cast<std::uint32_t>(product(i) / total);
    left -= units[i];
  }
  // Fewer units are left than there are replicas. A slot that has its unit already is known by its
  // count: floor + 1.
  while (left > 0) {
    std::size_t best = units.size();
    std::uint64_t most = 0;
    for (std::size_t i = 0; i < units.size(); ++i) {
      const auto rest = static_cast<std::uint64_t>(product(i) % total);
      const bool given = units[i] > static_cast<std::uint32_t>(product(i) / total);
      if (!given && rest > most) {
        most = rest;
        best = i;
      }
    }
    MOETIER_ASSERT(best < units.size());
    ++units[best];
    --left;
  }
}

}  // namespace moetier::eplb
