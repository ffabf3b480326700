#include "eplb/split/robust_shares.hpp"

#include <algorithm>
#include <numeric>

#include "eplb/split/fast_exp.hpp"
#include "eplb/split/share_rounding.hpp"
#include "schemas/base/assert.hpp"
#include "schemas/base/limits.hpp"

namespace moetier::eplb {
namespace {

constexpr int k_rounds = 150;
constexpr float k_sharpness = 60;  // of the soft maximum
constexpr float k_rate = 6;
constexpr float k_exact_part = 0.85F;  // of the start; the rest is even
constexpr float k_least_share = 1e-4F;
constexpr float k_damping = 0.02F;
constexpr double k_gain_worth = 0.01;
constexpr std::uint32_t k_none = 0xffffffffU;

}  // namespace

void robust_shares::reserve(std::uint32_t experts, std::uint32_t slots, std::uint32_t workers,
                            std::uint32_t samples) {
  const std::size_t lanes = (samples + 3) / 4 * 4;
  exact_.reserve(experts, slots, workers);
  sum_.reserve(experts);
  replicas_.reserve(experts);
  row_of_.reserve(experts);
  arc_start_.reserve(experts + 1);
  arcs_.reserve(slots);
  flow_.reserve(lanes * (slots / 2 + 1));  // an expert that splits has two slots
  mean_.reserve(slots / 2 + 1);
  base_.reserve(lanes * workers);
  load_.reserve(lanes * workers);
  for (auto* v : {&weight_, &most_, &total_}) v->reserve(lanes);
  for (auto* v : {&shares_, &old_}) v->reserve(slots);
  exact_units_.reserve(slots);
  own_amounts_.reserve(slots);
  own_units_.reserve(slots);
}

void robust_shares::build(const split_problem& p, std::span<const load_sample> samples) {
  const slot_layout& layout = *p.layout;
  const auto experts = static_cast<std::uint32_t>(p.loads.size());
  const std::uint32_t workers = layout.workers();
  const auto live = [&](std::uint32_t g) { return p.live.empty() || p.live[g] != 0; };
  replicas_.assign(experts, 0);
  std::uint32_t live_workers = 0;
  for (std::uint32_t g = 0; g < workers; ++g) {
    if (!live(g)) continue;
    ++live_workers;
    for (std::uint32_t s = layout.first(g); s < layout.first(g) + layout.count(g); ++s)
      if (p.slots[s] >= 0) ++replicas_[static_cast<std::size_t>(p.slots[s])];
  }
  row_of_.assign(experts, k_none);
  arc_start_.assign(1, 0);
  std::uint32_t rows = 0;
  for (std::uint32_t e = 0; e < experts; ++e) {
    if (replicas_[e] < 2) continue;
    row_of_[e] = rows++;
    arc_start_.push_back(arc_start_.back() + replicas_[e]);
  }
  arcs_.resize(arc_start_.back());
  own_units_.assign(arc_start_.begin(), arc_start_.end() - 1);  // the next arc of each row
  lanes_ = static_cast<std::uint32_t>((samples.size() + 3) / 4 * 4);
  flow_.assign(std::size_t{rows} * lanes_, 0);
  mean_.assign(rows, 0);
  base_.assign(std::size_t{workers} * lanes_, 0);
  load_.assign(base_.size(), 0);
  weight_.assign(lanes_, 0);
  most_.assign(lanes_, 0);
  total_.assign(lanes_, 0);

  // Each sample is scaled so that the mean worker's load is 1.
  double weights = 0;
  for (std::size_t v = 0; v < samples.size(); ++v) {
    MOETIER_ASSERT(samples[v].loads.size() == experts);
    double all = 0;
    for (std::uint32_t e = 0; e < experts; ++e)
      if (replicas_[e] > 0) all += static_cast<double>(samples[v].loads[e]);
    if (all == 0) continue;
    total_[v] = static_cast<float>(live_workers / all);
    weights += samples[v].weight;
  }
  MOETIER_ASSERT(weights > 0);
  for (std::size_t v = 0; v < samples.size(); ++v)
    if (total_[v] > 0) weight_[v] = static_cast<float>(samples[v].weight / weights);
  for (std::uint32_t e = 0; e < experts; ++e) {
    if (row_of_[e] == k_none) continue;
    float* __restrict own = &flow_[std::size_t{row_of_[e]} * lanes_];
    for (std::size_t v = 0; v < samples.size(); ++v) {
      own[v] = static_cast<float>(samples[v].loads[e]) * total_[v];
      mean_[row_of_[e]] += own[v] * weight_[v];
    }
  }
  for (std::uint32_t g = 0; g < workers; ++g) {
    if (!live(g)) continue;
    for (std::uint32_t s = layout.first(g); s < layout.first(g) + layout.count(g); ++s) {
      if (p.slots[s] < 0) continue;
      const auto e = static_cast<std::uint32_t>(p.slots[s]);
      if (row_of_[e] != k_none) {
        arcs_[own_units_[row_of_[e]]++] = {s, row_of_[e], g};
        continue;
      }
      float* __restrict own = &base_[std::size_t{g} * lanes_];
      for (std::size_t v = 0; v < samples.size(); ++v)
        own[v] += static_cast<float>(samples[v].loads[e]) * total_[v];
    }
  }
}

template <std::uint32_t Lanes>
void robust_shares::load_workers(std::span<const float> shares) {
  std::copy(base_.begin(), base_.end(), load_.begin());
  for (std::size_t a = 0; a < arcs_.size(); ++a) {
    float* __restrict load = &load_[std::size_t{arcs_[a].worker} * lanes_];
    const float* __restrict flow = &flow_[std::size_t{arcs_[a].row} * lanes_];
    const float x = shares[a];
    for (std::uint32_t first = 0; first < lanes_; first += Lanes)
      for (std::uint32_t v = 0; v < Lanes; ++v) load[first + v] += x * flow[first + v];
  }
  std::fill(most_.begin(), most_.end(), 0.0F);
  for (std::size_t at = 0; at < load_.size(); at += Lanes) {
    float* __restrict most = &most_[at % lanes_];
    for (std::uint32_t v = 0; v < Lanes; ++v) most[v] = std::max(most[v], load_[at + v]);
  }
}

void robust_shares::worker_loads(std::span<const float> shares) { load_workers<4>(shares); }

double robust_shares::mean_maximum(std::span<const float> shares) {
  worker_loads(shares);
  double mean = 0;
  for (std::uint32_t v = 0; v < lanes_; ++v) mean += double{weight_[v]} * double{most_[v]};
  return mean;
}

// Every share falls by how much its worker stands for the maximum, weighed by how much of the
// expert the sample has.
template <std::uint32_t Lanes>
void robust_shares::step(float rate) {
  load_workers<Lanes>(shares_);
  std::fill(total_.begin(), total_.end(), 0.0F);
  for (std::size_t at = 0; at < load_.size(); at += Lanes) {
    const float* __restrict most = &most_[at % lanes_];
    float* __restrict total = &total_[at % lanes_];
    float* __restrict own = &load_[at];
    for (std::uint32_t v = 0; v < Lanes; ++v) {
      own[v] = fast_exp(k_sharpness * (own[v] - most[v]));
      total[v] += own[v];
    }
  }
  for (std::uint32_t v = 0; v < lanes_; ++v) total_[v] = weight_[v] / total_[v];
  for (std::size_t at = 0; at < load_.size(); at += Lanes) {
    const float* __restrict total = &total_[at % lanes_];
    for (std::uint32_t v = 0; v < Lanes; ++v) load_[at + v] *= total[v];
  }
  for (std::size_t row = 0; row + 1 < arc_start_.size(); ++row) {
    const float* __restrict flow = &flow_[row * lanes_];
    const float factor = -rate / (mean_[row] + k_damping);
    float sum = 0;
    for (std::uint32_t a = arc_start_[row]; a < arc_start_[row + 1]; ++a) {
      const float* __restrict pressure = &load_[std::size_t{arcs_[a].worker} * lanes_];
      float lane[4] = {};
      for (std::uint32_t first = 0; first < lanes_; first += Lanes)
        for (std::uint32_t v = first; v < first + Lanes; v += 4)
          for (std::uint32_t i = 0; i < 4; ++i) lane[i] += pressure[v + i] * flow[v + i];
      const float slope = (lane[0] + lane[1]) + (lane[2] + lane[3]);
      shares_[a] = std::max(shares_[a] * fast_exp(factor * slope), k_least_share);
      sum += shares_[a];
    }
    for (std::uint32_t a = arc_start_[row]; a < arc_start_[row + 1]; ++a) shares_[a] /= sum;
  }
}

robust_outcome robust_shares::solve(split_problem p, std::span<const load_sample> samples,
                                    std::span<std::uint32_t> units) {
  MOETIER_ASSERT(!samples.empty() && p.loads.empty());
  sum_.assign(samples[0].loads.size(), 0);
  for (const load_sample& s : samples) {
    for (std::size_t e = 0; e < sum_.size(); ++e) sum_[e] += s.weight * s.loads[e];
  }
  p.loads = sum_;
  exact_.solve(p);
  exact_units_.resize(units.size());
  exact_.shares(p, exact_units_);
  build(p, samples);

  shares_.resize(arcs_.size());
  old_.resize(arcs_.size());
  for (std::size_t a = 0; a < arcs_.size(); ++a) {
    const std::uint32_t row = arcs_[a].row;
    const auto even = 1.0F / static_cast<float>(arc_start_[row + 1] - arc_start_[row]);
    shares_[a] = k_exact_part * static_cast<float>(exact_units_[arcs_[a].slot]) / k_shares_unit +
                 (1 - k_exact_part) * even;
    old_[a] = static_cast<float>(units[arcs_[a].slot]) / k_shares_unit;
  }
  robust_outcome outcome;
  outcome.mean_maximum_before = mean_maximum(old_);
  for (int i = 0; i < k_rounds; ++i) {
    const float rate = k_rate * (1 - 0.9F * static_cast<float>(i) / k_rounds);
    // The ring's 12 samples, and whatever else comes in fours.
    lanes_ == 12 ? step<12>(rate) : step<4>(rate);
  }
  outcome.mean_maximum_after = mean_maximum(shares_);
  outcome.worth_publishing =
      outcome.mean_maximum_after < outcome.mean_maximum_before * (1 - k_gain_worth);

  std::copy(exact_units_.begin(), exact_units_.end(), units.begin());  // single replicas: all
  for (std::size_t row = 0; row + 1 < arc_start_.size(); ++row) {
    own_amounts_.clear();
    for (std::uint32_t a = arc_start_[row]; a < arc_start_[row + 1]; ++a)
      own_amounts_.push_back(static_cast<std::uint64_t>(double{shares_[a]} * 0x1p40));
    own_units_.resize(own_amounts_.size());
    round_shares(own_amounts_, own_units_);
    for (std::uint32_t a = arc_start_[row]; a < arc_start_[row + 1]; ++a)
      units[arcs_[a].slot] = own_units_[a - arc_start_[row]];
  }
  return outcome;
}

}  // namespace moetier::eplb
