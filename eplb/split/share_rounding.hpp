#pragma once
// Amounts to shares: whole units of 1/65,536 that sum exactly to 65,536. Floor, then one unit each
// by falling remainder; of equals the smaller slot. Thread: any (a pure function).

#include <cstdint>
#include <span>

namespace moetier::eplb {

// One expert's amounts by rising slot to its units. No amount at all: evenly. Never allocates.
// Requires: as many units as amounts, at least one; the amounts' sum below 2^64.
void round_shares(std::span<const std::uint64_t> amounts, std::span<std::uint32_t> units) noexcept;

}  // namespace moetier::eplb
