#pragma once
// The step plan: into how many chunks a micro-batch is cut and how many rows each source has in
// each of them. Pure and equal on every member that is given the same values, so a lockstep group
// agrees by comparing one 64-bit hash; an independent source uses chunk_count() and split() alone.
// It plans for host-issued communication (ExternalComm); it never sees rows, clocks or carriers.
// Thread: any.

#include <cstdint>
#include <span>
#include <vector>

#include "schemas/base/error.hpp"

namespace moetier::transport {

// Part `part` of split(total, parts): the first total mod parts parts hold one row more than the
// rest. Requires: parts >= 1, part < parts.
struct split_part {
  std::uint32_t first = 0;
  std::uint32_t size = 0;

  bool operator==(const split_part&) const = default;
};
constexpr split_part split(std::uint32_t total, std::uint32_t parts, std::uint32_t part) noexcept {
  const std::uint32_t base = total / parts;
  const std::uint32_t longer = total % parts;
  return {.first = part * base + (part < longer ? part : longer),
          .size = base + (part < longer ? 1 : 0)};
}

// Chunks for `rows` rows of which at most `rows_per_chunk_max` fit a chunk: at least one, as no
// tokens are a legal call. Requires: rows_per_chunk_max >= 1.
constexpr std::uint32_t chunk_count(std::uint64_t rows, std::uint32_t rows_per_chunk_max) noexcept {
  if (rows == 0) return 1;
  return static_cast<std::uint32_t>((rows - 1) / rows_per_chunk_max + 1);
}

// What the plan depends on beside the counts.
struct step_facts {
  std::uint32_t rows_per_chunk_max =
      0;                        // M: receive rows of a chunk, or the source's credit window
  bool lockstep = false;        // M holds the rows of all sources
  bool uniform_rows = false;    // the carrier wants equal rows from all
  bool use_dp_padding = false;  // the caller wants equal rows from all
  std::uint32_t min_rows = 0;   // rows that a lockstep member without any still sends, 0 or 1

  bool operator==(const step_facts&) const = default;
};

struct step_plan {
  std::uint32_t chunks = 1;                       // C
  std::vector<std::uint32_t> padded;              // [S]
  std::vector<std::vector<std::uint32_t>> sizes;  // [C][S]
  std::uint64_t hash = 0;

  bool operator==(const step_plan&) const = default;
};

// Bounds a plan's size: tokens of one source in one micro-batch.
inline constexpr std::uint32_t k_plan_tokens_max = 1u << 20;

// counts: tokens per source; an independent source gives its own only. reason::invalid_argument
// when there is no count, no chunk size, or more sources or tokens than the tier's limits.
expected<step_plan> plan_step(std::span<const std::uint32_t> counts, const step_facts& facts);

}  // namespace moetier::transport
