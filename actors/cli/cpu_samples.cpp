#include "actors/cli/cpu_samples.hpp"

#include <utility>

namespace moetier::cli {

void cpu_samples::take_round(cold_sampler& sampler, weight_ring& ring, double flops,
                             const std::function<void(const std::byte*)>& call) {
  for (std::uint32_t i = 0; i < k_cold_per_round; ++i) {
    const cold_sampler::sample s = sampler.cold(flops, call);
    cold_us_.push_back(s.us);
    cold_of_.push_back(s.of_ceiling);
  }
  for (std::uint32_t i = 0; i < k_warm_per_round; ++i) {
    const cold_sampler::sample s = sampler.warm(flops, call);
    warm_us_.push_back(s.us);
    warm_of_.push_back(s.of_ceiling);
  }
  fma_.push_back(sampler.fma_gflops());
  read_1_.push_back(sampler.read_gb_s(ring.next(), false));
  read_4_.push_back(sampler.read_gb_s(ring.next(), true));
}

void cpu_samples::give(cpu_figures& to) {
  to.cold_us = spread_of_samples(std::move(cold_us_));
  to.cold_of = spread_of_samples(std::move(cold_of_));
  to.warm_us = spread_of_samples(std::move(warm_us_));
  to.warm_of = spread_of_samples(std::move(warm_of_));
  to.fma_gflops = spread_of_samples(std::move(fma_));
  to.read_gb_s_1 = spread_of_samples(std::move(read_1_));
  to.read_gb_s_4 = spread_of_samples(std::move(read_4_));
}

}  // namespace moetier::cli
