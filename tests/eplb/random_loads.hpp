#pragma once
// Loads for property tests, from a seed: lognormal, Zipf, constant, one-hot, zero. Thread: any.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

namespace moetier::eplb {

enum class load_kind : std::uint8_t { lognormal, zipf, constant, one_hot, zero };
inline constexpr load_kind k_load_kinds[] = {load_kind::lognormal, load_kind::zipf,
                                             load_kind::constant, load_kind::one_hot,
                                             load_kind::zero};

inline std::vector<std::uint64_t> random_loads(load_kind kind, std::uint32_t experts,
                                               std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::uint64_t> loads(experts, 0);
  const double steep = 0.6 + 0.1 * static_cast<double>(seed % 7);  // to 1.2
  std::lognormal_distribution<double> lognormal(0, steep);
  for (std::uint32_t e = 0; e < experts; ++e) {
    switch (kind) {
      case load_kind::lognormal:
        loads[e] = static_cast<std::uint64_t>(1000 * lognormal(random));
        break;
      case load_kind::zipf:
        loads[e] = static_cast<std::uint64_t>(1e6 / std::pow(e + 1, steep));
        break;
      case load_kind::constant: loads[e] = 7; break;
      case load_kind::one_hot: loads[e] = e == seed % experts ? 1000 : 0; break;
      case load_kind::zero: break;
    }
  }
  std::shuffle(loads.begin(), loads.end(), random);
  return loads;
}

}  // namespace moetier::eplb
