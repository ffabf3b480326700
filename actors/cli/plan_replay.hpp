#pragma once
// One layer's trace replayed: the reference greedy plans anew each window, ours wraps once and
// repairs. Both plan from the first 8 batches of a window and are judged on the last 8 of the next,
// by the replica choice that sources make. Owner replays one layer. Thread: owner.

#include <cstdint>
#include <optional>
#include <vector>

#include "actors/cli/bench_plan_loads.hpp"
#include "eplb/placement.hpp"
#include "eplb/planner/cold_plan.hpp"
#include "eplb/split/robust_shares.hpp"

namespace moetier::cli {

struct replayed_window {
  // Balancedness, mean over the judged batches.
  double greedy_even = 0, greedy_split = 0;
  double ours_fresh = 0, ours_ring = 0, ours_split = 0;
  std::uint32_t greedy_copies = 0, ours_copies = 0;
  double drift = 0;
  double planned_percent = 0;                     // of the bound, ours, by the loads planned from
  double warm_ns = 0;                             // repair, and robust shares once
  std::vector<double> worker_load, without_plan;  // of the last batch, mean 1
};

class plan_replay final {
 public:
  plan_replay(std::uint32_t experts, eplb::slot_layout layout);

  // The next window; the first one only plans.
  std::optional<replayed_window> next(const trace_window& window);

 private:
  using loads = std::vector<std::uint64_t>;
  using slots = std::vector<std::int32_t>;
  using units = std::vector<std::uint32_t>;

  void plan(const loads& w, replayed_window& into);
  units robust(std::span<const eplb::load_sample> samples, bool timed, replayed_window& into);
  std::vector<double> served(const trace_batch& b, const slots& s, const units& u);
  std::vector<double> split_of(const trace_batch& b, const slots& s);
  void judge(const trace_window& window, replayed_window& into);

  std::uint32_t experts_;
  eplb::slot_layout layout_;
  std::vector<eplb::worker_span> spans_;
  std::uint64_t window_ = 0;
  slots ours_, greedy_, greedy_distinct_;
  units ours_units_, greedy_units_;
  loads faded_;  // mean over past windows, times 256
  bool switched_ = false;
  std::vector<std::uint64_t> written_;  // by slot: window of its last copy
  std::vector<loads> ring_;             // the last window's first 8 batches
  eplb::cold_planner cold_;
  eplb::repairer repairer_;
  eplb::exact_split split_;
  eplb::robust_shares robust_;
};

}  // namespace moetier::cli
