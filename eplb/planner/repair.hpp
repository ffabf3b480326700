#pragma once
// Repair: a layer's placement follows its loads with as few copies as it takes. Again and again the
// exact split names the bottleneck workers; one of their experts gets a replica elsewhere (replace,
// one copy) or changes places with a less served one (swap, two). What stays keeps its slot, so a
// repaired placement can be committed by copying the moves alone.
//
// Candidates are ruled out by the bottleneck's own load first, then by one flow at the best limit
// so far; only a better one is solved to the end. Owner keeps one for many layers. Thread: owner.

#include <cstdint>
#include <span>
#include <vector>

#include "eplb/split/exact_split.hpp"

namespace moetier::eplb {

struct slot_move {
  std::uint32_t slot = 0;
  std::uint32_t expert = 0;
  std::int32_t replaced = -1;  // what was there; -1 = empty
  double score = 0;            // fall of the limit per copy, in the loads' unit

  bool operator==(const slot_move&) const = default;
};

struct repair_rules {
  std::uint32_t copies_max = 8;
  double start = 1.02;  // nothing is done up to this limit, in lower bounds
  double stop = 1.01;
  bool rewrite = false;  // nothing has been copied yet: a slot may be written again and again
  std::span<const std::uint8_t> fixed{};  // by slot: 1 = pinned, or written less than 4 windows ago
  std::span<const std::uint32_t> spare{};  // by worker: copies it can take; empty = any number
};

struct repair_outcome {
  double bound = 0;  // lower bound of the loads
  double limit_before = 0;
  double limit_after = 0;
  std::vector<slot_move> moves;  // in order, no slot twice
};

class repairer final {
 public:
  // Changes `slots` by the moves it returns. p.slots is ignored. Never raises the limit.
  // Experts without a live replica stay lost. Requires: somebody is live, no expert twice on a
  // worker.
  repair_outcome repair(split_problem p, std::span<std::int32_t> slots, const repair_rules& rules);

  // Gives every expert without a live replica a slot on the worker with the least load that has an
  // empty slot, or one whose expert has another live replica; hottest experts first. Returns the
  // moves; experts that fit nowhere stay lost.
  std::vector<slot_move> restore_lost(split_problem p, std::span<std::int32_t> slots,
                                      std::span<const std::uint8_t> fixed = {});

 private:
  struct candidate {
    std::uint32_t slot = 0;  // outside the bottleneck: takes `expert`
    std::uint32_t expert = 0;
    std::int32_t back_slot = -1;  // swap: the bottleneck's slot, which takes what `slot` had
    double bound = 0;             // limit that the bottleneck alone would still have
  };

  void survey(const split_problem& p, std::span<const std::int32_t> slots);
  void gather(const split_problem& p, std::span<const std::int32_t> slots,
              const repair_rules& rules, std::uint32_t copies_left);
  void offer(const split_problem& p, std::span<const std::int32_t> slots, candidate c);
  double bottleneck_after(const split_problem& p, std::span<const std::int32_t> slots,
                          const candidate& c) const;
  bool usable(const repair_rules& rules, std::uint32_t slot) const;

  exact_split split_, trial_;
  double limit_ = 0;
  std::vector<std::uint32_t> replicas_;  // by expert: live ones
  std::vector<std::uint32_t> inside_;    // by expert: of those, in the bottleneck
  std::vector<double> served_inside_;    // by expert
  std::vector<double> worker_load_;      // over its speed
  std::vector<std::uint32_t> outside_;   // workers, rising load
  std::vector<double> served_;           // by slot
  std::vector<std::uint32_t> taken_;     // by worker: copies so far
  std::vector<std::uint8_t> written_;    // by slot: this repair wrote it
  std::vector<candidate> candidates_;
  double cut_load_ = 0;
  double cut_speed_ = 0;
};

}  // namespace moetier::eplb
