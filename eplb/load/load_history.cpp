#include "eplb/load/load_history.hpp"

#include <algorithm>
#include <numeric>

#include "eplb/load/drift.hpp"
#include "schemas/base/assert.hpp"

namespace moetier::eplb {
namespace {

constexpr std::uint64_t k_faded_one = 256;
constexpr std::uint64_t k_selections_per_slot_min = 10;
constexpr std::size_t k_generations_kept = 8;  // released ones, to know late reports by

std::uint64_t sum_of(std::span<const std::uint64_t> loads) {
  return std::accumulate(loads.begin(), loads.end(), std::uint64_t{0});
}

}  // namespace

std::string_view report_verdict_name(report_verdict v) noexcept {
  constexpr std::string_view names[k_report_verdicts] = {
      "taken",        "epoch_older",   "generation_unknown", "generation_released",
      "plan_differs", "shape_differs", "before_ring",        "repeated"};
  return names[static_cast<std::size_t>(v)];
}

load_history::load_history(std::uint32_t experts, std::size_t layers)
    : experts_(experts),
      layers_(layers),
      running_(layers * experts, 0),
      last_(layers * experts, 0),
      faded_(layers * experts, 0),
      state_(layers) {
  for (sample& s : ring_) {
    s.loads.assign(layers * experts, 0);
    s.stale.assign(layers, 0);
  }
}

void load_history::know(epoch_number epoch, generation_number generation, plan_hash plan,
                        placement p) {
  MOETIER_ASSERT(p.experts() == experts_ && p.layers().size() == layers_);
  epoch_is(epoch);
  generations_.insert_or_assign(generation, generation_state{plan, std::move(p), false});
  while (generations_.size() > k_reports_live_max + k_generations_kept)
    generations_.erase(generations_.begin());
}

void load_history::release(generation_number generation) {
  const auto at = generations_.find(generation);
  if (at == generations_.end()) return;
  at->second.released = true;
  at->second.placed = {};
}

void load_history::epoch_is(epoch_number epoch) { epoch_ = std::max(epoch_, epoch); }

report_verdict load_history::judge(const load_report& report) const {
  if (report.tag.epoch < epoch_) return report_verdict::epoch_older;
  const auto at = generations_.find(report.tag.generation);
  if (at == generations_.end()) return report_verdict::generation_unknown;
  const generation_state& g = at->second;
  if (g.released) return report_verdict::generation_released;
  if (g.plan != report.tag.plan) return report_verdict::plan_differs;
  const int span = g.placed.span_index(report.worker);
  if (span < 0) return report_verdict::shape_differs;
  const std::size_t counts = layers_ * g.placed.spans()[static_cast<std::size_t>(span)].slots;
  const report_tag& tag = report.tag;
  bool fits = report.by_slot.size() == counts && tag.first_step <= tag.last_step &&
              tag.first_step / k_window_steps == tag.last_step / k_window_steps;
  for (const step_counts& s : report.samples) {
    fits = fits && s.by_slot.size() == counts && s.step % k_sample_every_steps == 0 &&
           s.step >= tag.first_step && s.step <= tag.last_step;
  }
  if (!fits) return report_verdict::shape_differs;
  if (tag.first_step / k_window_steps + 1 < window_) return report_verdict::before_ring;
  if (told_.contains({report.worker.value, tag.first_step})) return report_verdict::repeated;
  return report_verdict::taken;
}

report_verdict load_history::add(const load_report& report) {
  const report_verdict v = judge(report);
  ++counts_[static_cast<std::size_t>(v)];
  if (v != report_verdict::taken) return v;
  advance(report.tag.first_step);
  told_.insert({report.worker.value, report.tag.first_step});

  const placement& placed = generations_.at(report.tag.generation).placed;
  const auto span = static_cast<std::size_t>(placed.span_index(report.worker));
  const std::size_t slots = placed.spans()[span].slots;
  const bool late = report.tag.first_step / k_window_steps < window_;
  const auto each = [&](std::span<const std::uint64_t> by_slot, auto&& take) {
    for (std::size_t layer = 0; layer < layers_; ++layer) {
      const auto& experts = placed.layers()[layer].experts;
      for (std::size_t s = 0; s < slots; ++s) {
        const std::int32_t e = experts[placed.first_dense(span) + s];
        if (e >= 0)
          take(layer, layer * experts_ + static_cast<std::size_t>(e), by_slot[layer * slots + s]);
      }
    }
  };
  if (late) {
    // The window is in the faded mean already, by half (or whole, where it began it): so is this.
    each(report.by_slot, [&](std::size_t layer, std::size_t at, std::uint64_t n) {
      last_[at] += n;
      const bool whole = state_[layer].switched || windows_closed_ == 1;
      faded_[at] += whole ? k_faded_one * n : k_faded_one / 2 * n;
    });
  } else {
    each(report.by_slot, [&](std::size_t, std::size_t at, std::uint64_t n) { running_[at] += n; });
  }
  for (const step_counts& s : report.samples) {
    sample* into = sample_of(s.step);
    if (into == nullptr) continue;
    each(s.by_slot, [&](std::size_t, std::size_t at, std::uint64_t n) { into->loads[at] += n; });
  }
  return v;
}

// The ring's sample of a step; a new step takes the place of the oldest. nullptr: older than all.
load_history::sample* load_history::sample_of(std::uint64_t step) {
  sample* oldest = &ring_[0];
  for (sample& s : ring_) {
    if (s.used && s.step == step) return &s;
    if (!s.used || (oldest->used && s.step < oldest->step)) oldest = &s;
    if (!oldest->used) break;
  }
  if (oldest->used && oldest->step > step) return nullptr;
  oldest->used = true;
  oldest->step = step;
  std::fill(oldest->loads.begin(), oldest->loads.end(), std::uint64_t{0});
  // Samples before a switch say nothing about what comes after it.
  for (std::size_t l = 0; l < layers_; ++l)
    oldest->stale[l] = state_[l].switched && step / k_window_steps + 1 < window_ ? 1 : 0;
  return oldest;
}

void load_history::advance(std::uint64_t step) {
  const std::uint64_t window = step / k_window_steps;
  if (windows_closed_ == 0 && sum_of(running_) == 0) window_ = std::max(window_, window);
  while (window_ < window) {
    close_window();
    if (sum_of(running_) == 0 && sum_of(last_) == 0) window_ = window;  // idle: nothing to close
  }
}

void load_history::close_window() {
  for (std::size_t l = 0; l < layers_; ++l) {
    const auto now = row(running_, l);
    const auto mean = row(faded_, l);
    layer_state& s = state_[l];
    s.switched = false;
    s.drift = 0;
    if (sum_of(now) == 0) continue;  // an idle window teaches nothing
    if (s.begun) {
      s.drift = drift(now, mean);
      s.switched = is_switch(now, mean, static_cast<double>(sum_of(mean)) / k_faded_one);
    }
    for (std::size_t e = 0; e < experts_; ++e) {
      const std::uint64_t fresh = k_faded_one * now[e];
      mean[e] = s.begun && !s.switched ? (mean[e] + fresh) / 2 : fresh;
    }
    s.begun = true;
    if (!s.switched) continue;
    for (sample& old : ring_)
      if (old.used && old.step / k_window_steps < window_) old.stale[l] = 1;
  }
  last_.swap(running_);
  std::fill(running_.begin(), running_.end(), std::uint64_t{0});
  std::erase_if(told_, [&](const auto& t) { return t.second / k_window_steps < window_; });
  ++windows_closed_;
  ++window_;
}

std::span<const std::uint64_t> load_history::running(std::size_t layer) const noexcept {
  return std::span(running_).subspan(layer * experts_, experts_);
}
std::span<const std::uint64_t> load_history::last_window(std::size_t layer) const noexcept {
  return std::span(last_).subspan(layer * experts_, experts_);
}
std::span<const std::uint64_t> load_history::faded(std::size_t layer) const noexcept {
  return std::span(faded_).subspan(layer * experts_, experts_);
}

std::vector<load_sample> load_history::samples(std::size_t layer, std::uint32_t slots) const {
  MOETIER_ASSERT(layer < layers_);
  std::vector<load_sample> out;
  for (const sample& s : ring_) {
    if (!s.used || s.stale[layer] != 0) continue;
    const auto loads = std::span(s.loads).subspan(layer * experts_, experts_);
    if (sum_of(loads) < k_selections_per_slot_min * slots) continue;
    out.push_back({loads, s.step / k_window_steps == window_ ? 2U : 1U});
  }
  return out;
}

}  // namespace moetier::eplb
