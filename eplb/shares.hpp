#pragma once
// Shares: how an expert's selections are split over its replicas, in units of 1/65,536 that sum
// exactly to 65,536. They ride inside a generation under a revision of their own; a shares-only
// update needs no drain. Dead workers' slots have share 0; an expert without a live replica has an
// all-zero row, which the source half turns into UNAVAILABLE. Thread: any (an immutable value).

#include <cstdint>
#include <span>
#include <vector>

#include "eplb/placement.hpp"
#include "schemas/base/ids.hpp"

namespace moetier::eplb {

class shares final {
 public:
  shares() = default;

  // Every live replica of an expert gets the same share (floor, then one unit each by rising slot).
  // `live` has one flag per span.
  static shares even(const placement& p, const std::vector<bool>& live, shares_revision revision);

  // A plan's own units (by layer and dense position; an empty layer is split evenly), where some
  // workers may be dead: what they had goes to the expert's live replicas in proportion, or evenly
  // where those had nothing. Requires: units pass from_units, empty layers aside.
  static shares over_live(const placement& p, const std::vector<std::vector<std::uint32_t>>& units,
                          const std::vector<bool>& live, shares_revision revision);

  shares_revision revision() const noexcept { return revision_; }
  // Units by dense position of layers()[layer_index].
  std::span<const std::uint32_t> units(std::size_t layer_index) const noexcept;
  // Cumulative bounds of one expert's replicas, in the order of placement::replicas(): u picks the
  // first i with u < bounds[i]. All zero: no live replica.
  std::span<const std::uint32_t> bounds(std::size_t layer_index,
                                        std::uint32_t expert) const noexcept;
  bool has_live_replica(std::size_t layer_index, std::uint32_t expert) const noexcept;

  // Checks units against a placement and takes them over: sums are 65,536 or 0.
  static expected<shares> from_units(const placement& p,
                                     std::vector<std::vector<std::uint32_t>> units,
                                     shares_revision revision);

  bool operator==(const shares& other) const noexcept;

 private:
  shares_revision revision_;
  std::vector<std::vector<std::uint32_t>> units_;   // [layer][dense]
  std::vector<std::vector<std::uint32_t>> bounds_;  // [layer][by replica order]
  std::vector<std::vector<std::uint32_t>> start_;   // [layer][experts + 1]
};

}  // namespace moetier::eplb
