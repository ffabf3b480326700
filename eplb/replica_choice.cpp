#include "eplb/replica_choice.hpp"

#include <algorithm>

#include "schemas/base/assert.hpp"
#include "schemas/base/limits.hpp"

namespace moetier::eplb {
namespace {

constexpr std::size_t k_block = 1024;  // entries of the reference's count

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
  const choice_names names{key.generation, key.layer, key.source, key.step};
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
      const std::uint64_t u =
          (replica_hash(names, e, key.chunk) + j * k_shares_unit / total[e]) % k_shares_unit;
      while (u >= bounds[pick]) ++pick;
    }
    dense[i] = static_cast<std::int32_t>(hosts[pick]);
  }
  return -1;
}

std::int32_t choose_by_hash(const placement& p, const shares& s, std::size_t layer_index,
                            const choice_names& names, std::uint64_t first_row, std::uint32_t top_k,
                            std::span<const std::int32_t> ids, std::span<std::int32_t> dense) {
  MOETIER_ASSERT(dense.size() == ids.size() && top_k > 0);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    dense[i] = -1;
    if (ids[i] < 0) continue;
    const auto e = static_cast<std::uint32_t>(ids[i]);
    const auto bounds = s.bounds(layer_index, e);
    if (bounds.back() == 0) return ids[i];
    const std::uint64_t u = replica_hash(names, e, first_row + i / top_k);
    std::size_t pick = 0;
    while (u >= bounds[pick]) ++pick;
    dense[i] = static_cast<std::int32_t>(p.replicas(layer_index, e)[pick]);
  }
  return -1;
}

std::int32_t choose_as_reference(const placement& p, std::size_t layer_index, source_id source,
                                 std::span<const std::int32_t> ids, std::span<std::int32_t> dense,
                                 std::span<std::uint32_t> counts) {
  MOETIER_ASSERT(dense.size() == ids.size() && counts.size() >= p.experts());
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (i % k_block == 0) std::fill_n(counts.begin(), p.experts(), 0U);
    dense[i] = -1;
    if (ids[i] < 0) continue;
    const auto e = static_cast<std::uint32_t>(ids[i]);
    const auto hosts = p.replicas(layer_index, e);
    dense[i] =
        static_cast<std::int32_t>(hosts[(counts[e]++ + i / k_block + source.value) % hosts.size()]);
  }
  return -1;
}

}  // namespace moetier::eplb
