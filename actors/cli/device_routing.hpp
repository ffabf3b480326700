#pragma once
// Who is routed where in a row of `bench kernels --part device`: a function of numbers alone, so
// that a peer's script makes the same routing (tests/bench/peers/bench_rows.py). Draws come from
// mix() of schemas/base/mix.hpp:
//   draw(row, j) = mix(mix(mix(seed) ^ routing) ^ (64 row + j))
//   random   the first k of a pool 0..slots-1 shuffled by swapping place j with place
//            j + draw(row, j) % (slots - j)
//   equal    entry e = row k + j asks slot e % slots
//   weight   0.5 + 2^-24 (mix(draw) >> 40), so in [0.5, 1.5)
//
// Thread: any (pure functions).

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace moetier::cli {

enum class routing_kind : std::uint8_t { random = 0, equal = 1 };
std::string_view routing_kind_name(routing_kind kind) noexcept;

struct routed_rows {
  std::vector<std::int32_t> slot_ids;  // [rows][k]
  std::vector<float> weights;          // [rows][k]
};

struct routed_problem {
  std::uint32_t slots = 0;
  std::uint32_t k = 0;
  std::uint32_t rows = 0;
  routing_kind kind = routing_kind::random;
  std::uint64_t seed = 1;
  std::uint32_t routing = 0;  // which of the row's routings
};

// Requires: 1 <= k <= slots, k <= 64.
routed_rows route_bench_rows(const routed_problem& problem);

// Slots that any entry asks, ascending.
std::vector<std::uint32_t> active_slots(std::span<const std::int32_t> slot_ids);
// Places of eight that row tiles give to these entries: every slot's rows rounded up to eights.
std::uint64_t padded_rows(std::span<const std::int32_t> slot_ids);
// One number for a routing, for tests: h = mix(h ^ id) over all entries, from 0.
std::uint64_t routing_checksum(std::span<const std::int32_t> slot_ids) noexcept;

}  // namespace moetier::cli
