#include "actors/cli/plan_replay.hpp"

#include <algorithm>
#include <numeric>

#include <fmt/core.h>

#include "eplb/balance/balance.hpp"
#include "eplb/balance/bound.hpp"
#include "eplb/load/drift.hpp"
#include "eplb/load/plan_load.hpp"
#include "eplb/migration/gates.hpp"
#include "eplb/migration/slot_copy.hpp"
#include "eplb/planner/reference_global.hpp"
#include "eplb/replica_choice.hpp"
#include "schemas/base/assert.hpp"
#include "schemas/base/limits.hpp"
#include "schemas/base/time.hpp"

namespace moetier::cli {
namespace {

constexpr std::size_t k_planned_batches = 8;  // of a window
constexpr std::size_t k_fresh_batches = 4;    // of the next, for fresh shares; the rest is judged
constexpr std::uint64_t k_dwell_windows = 4;
constexpr std::uint64_t k_faded_one = 256;

double balance(const std::vector<double>& x) {
  return eplb::balancedness(std::span<const double>(x));
}

// Where the reference has an expert twice on a worker, one slot serves both parts.
void without_doubles(const eplb::slot_layout& layout, std::vector<std::int32_t>& slots,
                     std::vector<std::uint32_t>& units) {
  for (std::uint32_t g = 0; g < layout.workers(); ++g) {
    for (std::uint32_t s = layout.first(g); s < layout.first(g) + layout.count(g); ++s) {
      for (std::uint32_t t = layout.first(g); t < s && slots[s] >= 0; ++t) {
        if (slots[t] != slots[s]) continue;
        units[t] += units[s];
        units[s] = 0;
        slots[s] = -1;
      }
    }
  }
}

}  // namespace

plan_replay::plan_replay(std::uint32_t experts, eplb::slot_layout layout)
    : experts_(experts), layout_(std::move(layout)), faded_(experts, 0) {
  for (std::uint32_t g = 0; g < layout_.workers(); ++g)
    spans_.push_back({worker_id{static_cast<std::uint16_t>(g)}, fmt::format("w{}", g),
                      layout_.first(g), layout_.count(g)});
  written_.assign(layout_.slots(), 0);
}

std::vector<double> plan_replay::served(const trace_batch& b, const slots& s, const units& u) {
  const auto placed = eplb::placement::make(experts_, spans_, {{layer_id{0}, s}});
  MOETIER_ASSERT(placed.has_value());
  const auto shares = eplb::shares::from_units(*placed, {u}, {});
  MOETIER_ASSERT(shares.has_value());
  std::vector<std::uint32_t> counts(2 * std::size_t{experts_});
  std::vector<std::int32_t> dense;
  std::vector<double> x(layout_.workers(), 0);
  for (std::size_t source = 0; source < b.ids.size(); ++source) {
    dense.resize(b.ids[source].size());
    const eplb::choice_key key{generation_number{1}, layer_id{0},
                               source_id{static_cast<std::uint16_t>(source)}, window_, 0};
    eplb::choose_stratified(*placed, *shares, 0, key, b.ids[source], dense, counts);
    for (const std::int32_t d : dense) x[layout_.worker_of(static_cast<std::uint32_t>(d))] += 1;
  }
  return x;
}

// The batch's own exact split.
std::vector<double> plan_replay::split_of(const trace_batch& b, const slots& s) {
  split_.solve({.layout = &layout_, .slots = s, .loads = b.counts});
  std::vector<double> x(layout_.workers(), 0);
  for (std::uint32_t slot = 0; slot < layout_.slots(); ++slot)
    x[layout_.worker_of(slot)] += split_.served(slot);
  return x;
}

void plan_replay::plan(const loads& w, replayed_window& into) {
  const slots greedy = eplb::reference_global(w, layout_);
  if (!greedy_.empty()) into.greedy_copies = eplb::copy_count(layout_, greedy_, greedy);
  greedy_ = greedy;
  greedy_distinct_ = greedy;
  greedy_units_ = eplb::units_of(greedy, loads(greedy.size(), 1), experts_);
  without_doubles(layout_, greedy_distinct_, greedy_units_);

  const std::uint64_t seen = std::accumulate(faded_.begin(), faded_.end(), std::uint64_t{0});
  into.drift = eplb::drift(w, faded_);
  switched_ = seen > 0 && eplb::is_switch(w, faded_, static_cast<double>(seen) / k_faded_one);
  for (std::uint32_t e = 0; e < experts_; ++e) {
    const std::uint64_t fresh = k_faded_one * w[e];
    faded_[e] = seen > 0 && !switched_ ? (faded_[e] + fresh) / 2 : fresh;
  }
  const time_ns began = monotonic_now();
  if (ours_.empty()) {
    auto planned = cold_.plan(w, layout_);
    MOETIER_ASSERT(planned.has_value());
    ours_ = std::move(planned->slots);
  } else {
    std::vector<std::uint8_t> fixed(layout_.slots(), 0);
    for (std::size_t s = 0; s < fixed.size(); ++s)
      fixed[s] = written_[s] != 0 && window_ - written_[s] < k_dwell_windows ? 1 : 0;
    loads blended(experts_);
    eplb::plan_load(w, faded_, blended);
    const auto out = repairer_.repair(
        {.layout = &layout_, .slots = {}, .loads = blended}, ours_,
        {.copies_max = eplb::copies_allowed(into.drift, switched_), .fixed = fixed});
    for (const eplb::slot_move& m : out.moves) written_[m.slot] = window_;
    into.ours_copies = static_cast<std::uint32_t>(out.moves.size());
  }
  const eplb::split_problem p{.layout = &layout_, .slots = ours_, .loads = w};
  const double limit = split_.solve(p);
  ours_units_.resize(layout_.slots());
  split_.shares(p, ours_units_);
  into.warm_ns += static_cast<double>(monotonic_now() - began);
  into.planned_percent = 100 * eplb::lower_bound(w, layout_.slots(), layout_.workers()) / limit;
}

plan_replay::units plan_replay::robust(std::span<const eplb::load_sample> samples, bool timed,
                                       replayed_window& into) {
  units u = ours_units_;
  const time_ns began = monotonic_now();
  robust_.solve({.layout = &layout_, .slots = ours_, .loads = {}}, samples, u);
  if (timed) into.warm_ns += static_cast<double>(monotonic_now() - began);
  return u;
}

void plan_replay::judge(const trace_window& window, replayed_window& into) {
  std::vector<eplb::load_sample> fresh, ring;
  for (std::size_t b = 0; b < k_fresh_batches; ++b) fresh.push_back({window[b].counts, 1});
  // After a switch the samples before it say nothing.
  for (std::size_t b = 0; b < ring_.size(); ++b) ring.push_back({ring_[b], 1});
  for (std::size_t b = 0; b < k_fresh_batches; ++b) ring.push_back({window[b].counts, 2});
  loads first(experts_, 0);
  for (const auto& s : fresh)
    for (std::uint32_t e = 0; e < experts_; ++e) first[e] += s.loads[e];
  const double seen =
      static_cast<double>(std::accumulate(faded_.begin(), faded_.end(), std::uint64_t{0}));
  const bool switching = eplb::is_switch(first, faded_, seen / k_faded_one);
  const units fresh_units = robust(fresh, false, into);
  const units ring_units = robust(switching ? fresh : ring, true, into);

  double batches = 0;
  for (std::size_t b = k_fresh_batches; b < window.size(); ++b, ++batches) {
    const trace_batch& batch = window[b];
    into.greedy_even += balance(served(batch, greedy_distinct_, greedy_units_));
    into.greedy_split += balance(split_of(batch, greedy_distinct_));
    into.ours_fresh += balance(served(batch, ours_, fresh_units));
    into.worker_load = served(batch, ours_, ring_units);
    into.ours_ring += balance(into.worker_load);
    into.ours_split += balance(split_of(batch, ours_));
  }
  for (double* v :
       {&into.greedy_even, &into.greedy_split, &into.ours_fresh, &into.ours_ring, &into.ours_split})
    *v /= batches;
  into.without_plan.assign(layout_.workers(), 0);
  const auto sizes = eplb::even_partition(experts_, layout_.workers());
  std::size_t e = 0;
  for (std::uint32_t g = 0; g < layout_.workers(); ++g)
    for (std::uint32_t i = 0; i < sizes[g]; ++i)
      into.without_plan[g] += static_cast<double>(window.back().counts[e++]);
  for (auto* loads_of : {&into.worker_load, &into.without_plan}) {
    const double mean =
        std::accumulate(loads_of->begin(), loads_of->end(), 0.0) / layout_.workers();
    for (double& x : *loads_of) x /= mean;
  }
}

std::optional<replayed_window> plan_replay::next(const trace_window& window) {
  replayed_window told;
  const bool first = window_++ == 0;
  if (!first) judge(window, told);
  loads w(experts_, 0);
  ring_.clear();
  for (std::size_t b = 0; b < k_planned_batches; ++b) {
    ring_.push_back(window[b].counts);
    for (std::uint32_t e = 0; e < experts_; ++e) w[e] += window[b].counts[e];
  }
  plan(w, told);
  if (first) return std::nullopt;
  return told;
}

}  // namespace moetier::cli
