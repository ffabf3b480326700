#pragma once
// How far two loads of one layer differ: half the sum of the differences of their shares (total
// variation), and how much of that mere sampling explains. Thread: any (pure functions).

#include <cstdint>
#include <span>

namespace moetier::eplb {

inline constexpr double k_switch_drift = 0.15;  // above: the mixture of the load has changed
inline constexpr double k_mild_drift = 0.05;    // below: hardly anything has

// In [0, 1]; 0 where one of them is without load. Requires: equal sizes.
double drift(std::span<const std::uint64_t> a, std::span<const std::uint64_t> b) noexcept;
// The drift that two samples of the same mixture are expected to show, given their sizes.
double drift_of_sampling(std::span<const std::uint64_t> a, double count_a, double count_b) noexcept;
// A change that is no noise: above k_switch_drift and above twice the sampling's. `b` stands for
// count_b selections.
bool is_switch(std::span<const std::uint64_t> a, std::span<const std::uint64_t> b,
               double count_b) noexcept;

}  // namespace moetier::eplb
