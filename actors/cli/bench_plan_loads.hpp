#pragma once
// Loads for `bench plan`: synthetic layers, layers put together from recorded domains, and traces
// in which the mixture of domains drifts. Everything follows from the seed. Thread: owner.

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "schemas/base/error.hpp"

namespace moetier::cli {

// Recorded totals: [domain][layer][expert].
struct domain_totals {
  std::vector<std::string> names;
  std::vector<std::vector<std::vector<std::uint64_t>>> counts;
};
expected<domain_totals> read_domains(const std::string& path);

// `layer` of wide layers: recorded layers side by side, each an equal part of every domain.
// [domain][expert], sums to 1. Requires: layer < wide_layers().
std::vector<std::vector<double>> wide_layer(const domain_totals& d, std::uint32_t experts,
                                            std::size_t layer);
// 0 where so many experts cannot be put together from them.
std::size_t wide_layers(const domain_totals& d, std::uint32_t experts);
unexpected_error fits_no_shape(const domain_totals& d, const std::string& path);

// Planned layers of a million selections: lognormal, or Zipf where zipf_power > 0; or domains mixed
// at random.
std::vector<std::vector<std::uint64_t>> synthetic_loads(double lognormal_sigma, double zipf_power,
                                                        std::uint32_t experts, std::uint32_t layers,
                                                        std::uint64_t seed);
std::vector<std::vector<std::uint64_t>> recorded_loads(const domain_totals& d,
                                                       std::uint32_t experts, std::uint32_t layers,
                                                       std::uint64_t seed);

// One batch: expert ids of every source.
struct trace_batch {
  std::vector<std::vector<std::int32_t>> ids;  // [source][selection]
  std::vector<std::uint64_t> counts;           // by expert
};
using trace_window = std::vector<trace_batch>;  // 12 batches

enum class drift_kind : std::uint8_t { stationary, mild, mild_persistent, strong, hard_switch };
inline constexpr drift_kind k_drift_kinds[] = {drift_kind::stationary, drift_kind::mild,
                                               drift_kind::mild_persistent, drift_kind::strong,
                                               drift_kind::hard_switch};
std::string drift_name(drift_kind k);

// Window after window of one layer. Sources: 32 of 1,024 selections, each with a vector of its own
// from Dirichlet(450 p), drawn per batch, or per window where sources persist.
class drifting_layer final {
 public:
  // Requires: domains not empty, each of equal size.
  drifting_layer(std::vector<std::vector<double>> domains, drift_kind kind, std::uint64_t seed);
  trace_window next();

 private:
  std::vector<double> mixture();

  std::vector<std::vector<double>> domains_;
  drift_kind kind_;
  std::mt19937_64 random_;
  std::vector<double> theta_;
  std::size_t window_ = 0;
};

// A recorded trace of ids as windows of one layer: each domain's windows one after another.
expected<std::vector<std::vector<trace_window>>> recorded_windows(const std::string& path,
                                                                  std::uint32_t experts);

}  // namespace moetier::cli
