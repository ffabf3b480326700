#pragma once
// The loads of one session, by layer and expert: the running window of 64 steps, a mean over past
// windows that fades by half with each, a ring of 12 samples of single steps, and whether the last
// window was a switch to another mixture. Built from workers' reports, which come late, twice and
// out of order: what does not belong is dropped and counted by reason, never added.
//
// Nothing is reset by a commit: reports name their generation, whose placement turns slots into
// experts. Thread: owner.

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string_view>
#include <vector>

#include "eplb/limits.hpp"
#include "eplb/load/load_report.hpp"
#include "eplb/placement.hpp"
#include "eplb/split/robust_shares.hpp"

namespace moetier::eplb {

enum class report_verdict : std::uint8_t {
  taken,
  epoch_older,
  generation_unknown,
  generation_released,
  plan_differs,   // same generation, another hash
  shape_differs,  // worker, number of counts, or steps that no window or sample has
  before_ring,    // older than the last full window
  repeated,       // this worker has told of these steps
};
inline constexpr std::size_t k_report_verdicts = 8;
std::string_view report_verdict_name(report_verdict v) noexcept;

class load_history final {
 public:
  load_history(std::uint32_t experts, std::size_t layers);

  // A generation that is served from now on, under this epoch or a later one.
  // Requires: p has as many layers and experts.
  void know(epoch_number epoch, generation_number generation, plan_hash plan, placement p);
  void release(generation_number generation);
  void epoch_is(epoch_number epoch);

  report_verdict add(const load_report& report);
  // Steps went on, whether anybody reported or not: closes the windows before this step's.
  void advance(std::uint64_t step);

  // Requires: layer < layers.
  std::span<const std::uint64_t> running(std::size_t layer) const noexcept;
  std::span<const std::uint64_t> last_window(std::size_t layer) const noexcept;
  // Times 256. Integers: the same on every machine.
  std::span<const std::uint64_t> faded(std::size_t layer) const noexcept;
  double last_drift(std::size_t layer) const noexcept { return state_[layer].drift; }
  bool switched(std::size_t layer) const noexcept { return state_[layer].switched; }
  std::uint64_t windows_closed() const noexcept { return windows_closed_; }
  // Samples that may be planned from: not stale, at least 10 selections per slot; those of the
  // running window count twice. Valid until the next add() or advance().
  std::vector<load_sample> samples(std::size_t layer, std::uint32_t slots) const;

  std::uint64_t count(report_verdict v) const noexcept {
    return counts_[static_cast<std::size_t>(v)];
  }

 private:
  struct generation_state {
    plan_hash plan;
    placement placed;
    bool released = false;
  };
  struct layer_state {
    double drift = 0;
    bool switched = false;
    bool begun = false;  // the faded mean has a window in it
  };
  struct sample {
    bool used = false;
    std::uint64_t step = 0;
    std::vector<std::uint64_t> loads;  // [layer][expert]
    std::vector<std::uint8_t> stale;   // by layer
  };

  report_verdict judge(const load_report& report) const;
  void close_window();
  sample* sample_of(std::uint64_t step);
  std::span<std::uint64_t> row(std::vector<std::uint64_t>& table, std::size_t layer) noexcept {
    return std::span(table).subspan(layer * experts_, experts_);
  }

  std::uint32_t experts_;
  std::size_t layers_;
  epoch_number epoch_;
  std::uint64_t window_ = 0;  // number of the running one
  std::uint64_t windows_closed_ = 0;
  std::map<generation_number, generation_state> generations_;
  std::set<std::pair<std::uint16_t, std::uint64_t>> told_;  // worker, first step; of two windows
  std::vector<std::uint64_t> running_, last_, faded_;       // [layer][expert]
  std::vector<layer_state> state_;
  std::array<sample, k_ring_samples> ring_;
  std::array<std::uint64_t, k_report_verdicts> counts_{};
};

}  // namespace moetier::eplb
