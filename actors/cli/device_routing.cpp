#include "actors/cli/device_routing.hpp"

#include <algorithm>
#include <map>
#include <numeric>

#include "schemas/base/assert.hpp"
#include "schemas/base/mix.hpp"

namespace moetier::cli {

std::string_view routing_kind_name(routing_kind kind) noexcept {
  return kind == routing_kind::equal ? "equal" : "random";
}

routed_rows route_bench_rows(const routed_problem& p) {
  MOETIER_ASSERT(p.k >= 1 && p.k <= p.slots && p.k <= 64);
  routed_rows routed;
  routed.slot_ids.reserve(std::size_t{p.rows} * p.k);
  routed.weights.reserve(std::size_t{p.rows} * p.k);
  const std::uint64_t start = mix(mix(p.seed) ^ p.routing);
  std::vector<std::uint32_t> pool(p.slots);
  for (std::uint64_t row = 0; row < p.rows; ++row) {
    std::iota(pool.begin(), pool.end(), 0U);
    for (std::uint32_t j = 0; j < p.k; ++j) {
      const std::uint64_t draw = mix(start ^ (row * 64 + j));
      std::swap(pool[j], pool[j + draw % (p.slots - j)]);
      const auto slot = p.kind == routing_kind::equal
                            ? static_cast<std::int32_t>((row * p.k + j) % p.slots)
                            : static_cast<std::int32_t>(pool[j]);
      routed.slot_ids.push_back(slot);
      routed.weights.push_back(0.5F + 0x1p-24F * static_cast<float>(mix(draw) >> 40));
    }
  }
  return routed;
}

std::vector<std::uint32_t> active_slots(std::span<const std::int32_t> slot_ids) {
  std::vector<std::uint32_t> active;
  for (const std::int32_t slot : slot_ids)
    if (slot >= 0) active.push_back(static_cast<std::uint32_t>(slot));
  std::sort(active.begin(), active.end());
  active.erase(std::unique(active.begin(), active.end()), active.end());
  return active;
}

std::uint64_t padded_rows(std::span<const std::int32_t> slot_ids) {
  std::map<std::int32_t, std::uint64_t> rows;
  for (const std::int32_t slot : slot_ids)
    if (slot >= 0) ++rows[slot];
  std::uint64_t places = 0;
  for (const auto& [slot, count] : rows) places += (count + 7) / 8 * 8;
  return places;
}

std::uint64_t routing_checksum(std::span<const std::int32_t> slot_ids) noexcept {
  std::uint64_t h = 0;
  for (const std::int32_t slot : slot_ids)
    h = mix(h ^ static_cast<std::uint64_t>(static_cast<std::uint32_t>(slot)));
  return h;
}

}  // namespace moetier::cli
