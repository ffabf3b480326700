#pragma once
// The reference's statistics, for comparison: per step load = 0.9 * load + count, nothing again
// after each update of the placement. Thread: owner.

#include <cstdint>
#include <span>
#include <vector>

#include "schemas/base/assert.hpp"

namespace moetier::eplb {

class decayed_load final {
 public:
  explicit decayed_load(std::size_t experts) : load_(experts, 0) {}
  void step(std::span<const std::uint64_t> counts) {
    MOETIER_ASSERT(counts.size() == load_.size());
    for (std::size_t e = 0; e < load_.size(); ++e)
      load_[e] = 0.9 * load_[e] + static_cast<double>(counts[e]);
  }
  void placement_updated() { load_.assign(load_.size(), 0); }
  std::span<const double> load() const noexcept { return load_; }

 private:
  std::vector<double> load_;
};

}  // namespace moetier::eplb
