#include "eplb/replica_choice.hpp"

#include <algorithm>

#include "schemas/base/assert.hpp"
#include "schemas/base/limits.hpp"
#include "schemas/base/mix.hpp"

namespace moetier::eplb {
namespace {

constexpr std::uint64_t k_low_24 = 0xffffffu;

std::uint64_t phase_of(const choice_key& key, std::uint32_t expert) noexcept {
  const std::uint64_t named =
      mix(mix(key.generation.value) ^ (std::uint64_t{key.layer.value} << 32 | expert));
  const std::uint64_t place =
      std::uint64_t{key.source.value} << 48 | (key.step & k_low_24) << 24 | (key.chunk & k_low_24);
  return mix(named ^ place) >> 48;
}

}  // namespace

std::int32_t choose_stratified(const placement& p, const shares& s, std::size_t layer_index,
                               const choice_key& key, std::span<const std::int32_t> ids,
                               std::span<std::int32_t> dense, std::span<std::uint32_t> counts) {
  MOETIER_ASSERT(dense.size() == ids.size());
  MOETIER_ASSERT(counts.size() >= 2 * std::size_t{p.experts()});
  const std::span<std::uint32_t> total = counts.first(p.experts());
  const std::span<std::uint32_t> seen = counts.subspan(p.experts(), p.experts());
  std::fill(total.begin(), total.end(), 0U);
  std::fill(seen.begin(), seen.end(), 0U);
  for (const std::int32_t e : ids) {
    if (e >= 0) ++total[static_cast<std::size_t>(e)];
  }
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0) {
      dense[i] = -1;
      continue;
    }
    const auto e = static_cast<std::uint32_t>(ids[i]);
    const auto hosts = p.replicas(layer_index, e);
    const auto bounds = s.bounds(layer_index, e);
    if (bounds.back() == 0) return ids[i];
    const std::uint64_t j = seen[e]++;
    std::size_t pick = 0;
    if (hosts.size() > 1) {
      // The phase is the same for all selections of an expert in the chunk; it is cheap enough to
      // make anew.
      const std::uint64_t u = (phase_of(key, e) + j * k_shares_unit / total[e]) % k_shares_unit;
      while (u >= bounds[pick]) ++pick;
    }
    dense[i] = static_cast<std::int32_t>(hosts[pick]);
  }
  return -1;
}

}  // namespace moetier::eplb
