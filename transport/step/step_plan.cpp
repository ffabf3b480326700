#include "transport/step/step_plan.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "schemas/base/assert.hpp"
#include "schemas/base/checksum.hpp"
#include "schemas/base/limits.hpp"

namespace moetier::transport {
namespace {

// The plan's canonical bytes are its numbers as little-endian u32, inputs first.
class hasher {
 public:
  void add(std::uint32_t value) {
    for (int shift = 0; shift < 32; shift += 8) {
      bytes_.push_back(static_cast<std::byte>((value >> shift) & 0xffu));
    }
  }
  std::uint64_t value() const noexcept { return xxh3_64(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

std::uint64_t hash_of(std::span<const std::uint32_t> counts, const step_facts& facts,
                      const step_plan& plan) {
  hasher h;
  h.add(facts.rows_per_chunk_max);
  h.add(static_cast<std::uint32_t>(facts.lockstep) |
        static_cast<std::uint32_t>(facts.uniform_rows) << 1 |
        static_cast<std::uint32_t>(facts.use_dp_padding) << 2 | facts.min_rows << 3);
  h.add(static_cast<std::uint32_t>(counts.size()));
  for (const std::uint32_t count : counts) h.add(count);
  h.add(plan.chunks);
  for (const auto& chunk : plan.sizes) {
    for (const std::uint32_t size : chunk) h.add(size);
  }
  return h.value();
}

}  // namespace

expected<step_plan> plan_step(std::span<const std::uint32_t> counts, const step_facts& facts) {
  if (counts.empty() || counts.size() > k_sources_max) {
    return fail(reason::invalid_argument, "the number of counts", counts.size(),
                fmt::format("1 to {}", k_sources_max));
  }
  if (facts.rows_per_chunk_max == 0) {
    return fail(reason::invalid_argument, "rows_per_chunk_max", 0, "1 or more");
  }
  if (facts.min_rows > 1) {
    return fail(reason::invalid_argument, "min_rows", facts.min_rows, "0 or 1");
  }
  const std::uint32_t largest = *std::max_element(counts.begin(), counts.end());
  if (largest > k_plan_tokens_max) {
    return fail(reason::limit_exceeded, "the largest count", largest, k_plan_tokens_max);
  }

  step_plan plan;
  plan.padded.assign(counts.begin(), counts.end());
  if (facts.use_dp_padding || facts.uniform_rows) {
    std::fill(plan.padded.begin(), plan.padded.end(), largest);
  }
  const std::uint64_t rows =
      facts.lockstep ? std::uint64_t{largest} * counts.size() : std::uint64_t{plan.padded.front()};
  plan.chunks = chunk_count(rows, facts.rows_per_chunk_max);

  plan.sizes.resize(plan.chunks);
  for (std::uint32_t c = 0; c < plan.chunks; ++c) {
    for (const std::uint32_t total : plan.padded) {
      std::uint32_t size = split(total, plan.chunks, c).size;
      // Every member makes the same replacement, so all of them meet in every exchange.
      if (size == 0 && facts.lockstep) size = facts.min_rows;
      plan.sizes[c].push_back(size);
    }
  }
  plan.hash = hash_of(counts, facts, plan);
  MOETIER_ASSERT(plan.sizes.size() == plan.chunks);
  return plan;
}

}  // namespace moetier::transport
