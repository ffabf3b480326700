#pragma once
// The exact split of a fixed placement: how much of each expert every replica serves so that the
// fullest worker is as light as it can be. A min-max problem solved as a bipartite flow: at a limit
// T, experts with several replicas flow to their workers, each with room T less what only it can
// serve. Where the flow does not fit, the minimum cut names the workers and experts that cannot get
// below a larger T; the flow so far stays, since room only grows.
//
// Integers throughout: loads are shifted so that their sum lies just below 2^56 and limits are
// rounded up, so a limit is exact to 2^-40 and equal inputs give equal shares on every machine. The
// owner keeps one for many layers; after the first call of a size nothing is allocated.
// Thread: owner.

#include <cstdint>
#include <span>
#include <vector>

#include "eplb/slot_layout.hpp"

namespace moetier::eplb {

struct split_problem {
  const slot_layout* layout = nullptr;
  std::span<const std::int32_t> slots;   // expert by slot, -1 = empty
  std::span<const std::uint64_t> loads;  // by expert
  std::span<const std::uint8_t> live{};  // by worker, 0 or 1; empty = all
  // Relative speed of workers in 1/65,536; empty = all alike. A worker may be limit * speed full.
  std::span<const std::uint32_t> speeds{};
};

class exact_split final {
 public:
  // Allocates for problems up to this size.
  void reserve(std::uint32_t experts, std::uint32_t slots, std::uint32_t workers);

  // Solves; the fullest worker's load (divided by its speed), in the loads' unit. Experts without a
  // live replica are left out.
  // Requires: slots.size() == layout.slots(), ids in -1..loads.size()-1, no expert twice on a live
  // worker.
  double solve(const split_problem& p);
  // Whether the fullest worker can be at most `limit`. What the other queries say is then
  // undefined.
  bool fits(const split_problem& p, double limit);

  // --- of the last solve() ---
  double limit() const noexcept { return static_cast<double>(limit_) / scale_; }
  // Load served by slot, in the loads' unit; rounded down.
  double served(std::uint32_t slot) const noexcept {
    return static_cast<double>(amounts_[slot]) / scale_;
  }
  std::span<const std::uint64_t> amounts() const noexcept { return amounts_; }  // shifted loads
  // Workers and experts that hold the limit up: nobody else can serve more of these experts.
  bool bottleneck(std::uint32_t worker) const noexcept { return in_cut_[worker] != 0; }
  std::uint32_t experts_lost() const noexcept { return experts_lost_; }
  // Units of 1/65,536 by slot; slots of workers that are not live get none.
  void shares(const split_problem& p, std::span<std::uint32_t> units);

 private:
  struct arc {
    std::uint32_t expert;  // index of the flowing expert
    std::uint32_t worker;
    std::uint32_t slot;
    std::int64_t flow;
  };

  void build(const split_problem& p);
  void fill_greedily();
  bool augment_all();
  bool levels();
  std::int64_t push(std::uint32_t expert, std::int64_t wanted);
  std::int64_t room(std::uint32_t g) const noexcept;
  void raise_limit();
  void note_amounts(const split_problem& p);

  double scale_ = 1;        // shifted load per load
  std::int64_t limit_ = 0;  // shifted
  std::uint32_t experts_lost_ = 0;
  std::int64_t total_ = 0;  // of the loads that somebody live can serve, shifted

  std::vector<std::int64_t> base_;  // by worker: what only it can serve
  std::vector<std::int64_t> used_;  // by worker: flow into it
  std::vector<std::uint32_t> speed_;
  std::vector<std::uint8_t> live_;
  std::vector<std::uint8_t> in_cut_;
  std::vector<std::int64_t> shifted_;      // by expert
  std::vector<std::uint32_t> start_;       // by expert: first of its live slots in hosts_
  std::vector<std::uint32_t> hosts_;       // live slots by expert
  std::vector<std::uint32_t> next_;        // scratch by expert
  std::vector<std::uint32_t> flowing_;     // experts with several live replicas
  std::vector<std::int64_t> left_;         // by flowing expert: not placed yet
  std::vector<arc> arcs_;                  // by flowing expert
  std::vector<std::uint32_t> arc_start_;   // flowing experts + 1
  std::vector<std::uint32_t> at_worker_;   // arc numbers by worker
  std::vector<std::uint32_t> worker_arc_;  // workers + 1 offsets into at_worker_
  std::vector<std::uint32_t> level_of_expert_, level_of_worker_, queue_;
  std::vector<std::uint32_t> turn_of_expert_, turn_of_worker_;
  std::vector<std::uint64_t> amounts_;      // by slot
  std::vector<std::uint64_t> own_amounts_;  // scratch of shares()
  std::vector<std::uint32_t> own_units_;
};

}  // namespace moetier::eplb
