#pragma once
// What counts as load: selections of live rows, all repeats. Padding, rows that stand in for an
// empty chunk, warm-up, calibration and canaries do not; ids outside the layer's experts are
// counted apart. Shared experts lie outside the ids. Owner counts one layer. Thread: owner.

#include <cstdint>
#include <span>
#include <vector>

namespace moetier::eplb {

enum class row_kind : std::uint8_t { live, padding, stand_in, warm_up, calibration, canary };

class selection_counts final {
 public:
  explicit selection_counts(std::uint32_t experts) : by_expert_(experts, 0) {}

  // ids row after row, top_k each; -1 = a position that asks for no expert (refused).
  // Requires: top_k > 0, ids.size() a multiple of it.
  void add(row_kind kind, std::uint32_t top_k, std::span<const std::int32_t> ids);

  std::span<const std::uint64_t> by_expert() const noexcept { return by_expert_; }
  std::uint64_t counted() const noexcept { return counted_; }
  std::uint64_t refused() const noexcept { return refused_; }
  std::uint64_t invalid() const noexcept { return invalid_; }
  // Live rows (tokens times repeats) times top_k is counted + refused + invalid.
  bool complete(std::uint64_t live_rows, std::uint32_t top_k) const noexcept {
    return live_rows * top_k == counted_ + refused_ + invalid_;
  }

 private:
  std::vector<std::uint64_t> by_expert_;
  std::uint64_t counted_ = 0;
  std::uint64_t refused_ = 0;
  std::uint64_t invalid_ = 0;
};

}  // namespace moetier::eplb
