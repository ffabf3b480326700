#pragma once
// Robust shares: a split that is good on average over recent samples of single steps, where the
// exact split of their sum over-fits. Minimises the mean over samples (each scaled to mean worker
// load 1) of a soft maximum of worker load by 150 rounds of multiplicative updates, from the exact
// shares mixed with even ones. The owner keeps one for many layers; after reserve() nothing is
// allocated. Results are the same on every machine: the exponential is our own. Thread: owner.

#include <cstdint>
#include <span>
#include <vector>

#include "eplb/split/exact_split.hpp"

namespace moetier::eplb {

struct load_sample {
  std::span<const std::uint64_t> loads;  // by expert
  std::uint32_t weight = 1;              // 2: counts twice
};

struct robust_outcome {
  double mean_maximum_before = 0;  // of the shares in use, over the samples, mean load 1
  double mean_maximum_after = 0;
  bool worth_publishing = false;  // falls by more than 1 %
};

class robust_shares final {
 public:
  void reserve(std::uint32_t experts, std::uint32_t slots, std::uint32_t workers,
               std::uint32_t samples);

  // `units`: in, the shares in use; out, the new ones (whether published or not is told).
  // Requires: p.loads empty (the samples' sum takes its place), at least one sample with load, at
  // most as many as reserved.
  robust_outcome solve(split_problem p, std::span<const load_sample> samples,
                       std::span<std::uint32_t> units);

 private:
  struct arc {
    std::uint32_t slot;
    std::uint32_t row;  // of its expert in flow_
    std::uint32_t worker;
  };

  void build(const split_problem& p, std::span<const load_sample> samples);
  double mean_maximum(std::span<const float> shares);
  void worker_loads(std::span<const float> shares);
  // One round. Lanes: how many samples are computed side by side, so that loops over them become
  // vector code; lanes_ is a multiple of it.
  template <std::uint32_t Lanes>
  void step(float rate);
  template <std::uint32_t Lanes>
  void load_workers(std::span<const float> shares);

  exact_split exact_;
  std::uint32_t lanes_ = 0;              // samples, rounded up to a multiple of 4
  std::vector<std::uint64_t> sum_;       // by expert, weighted
  std::vector<std::uint32_t> replicas_;  // by expert, live
  std::vector<std::uint32_t> row_of_;    // by expert, of those with several live replicas
  std::vector<std::uint32_t> arc_start_;
  std::vector<arc> arcs_;            // by expert, then slot
  std::vector<float> flow_;          // [row][lane]: scaled load of an expert in a sample
  std::vector<float> mean_;          // [row]
  std::vector<float> base_;          // [worker][lane]: what only it can serve
  std::vector<float> load_;          // [worker][lane]
  std::vector<float> weight_;        // [lane], sums to 1
  std::vector<float> most_, total_;  // [lane]
  std::vector<float> shares_, old_;  // by arc
  std::vector<std::uint32_t> exact_units_;
  std::vector<std::uint64_t> own_amounts_;
  std::vector<std::uint32_t> own_units_;
};

}  // namespace moetier::eplb
