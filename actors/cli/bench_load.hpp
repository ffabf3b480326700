#pragma once
// What the router logits of `bench tier` and `bench sessions` look like: normal noise, all experts
// equally often, or
// skewed by a Zipf law. The same load and seed give the same logits. Thread: owner.

#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "kernels/routing/load_generator.hpp"

namespace moetier::cli {

inline constexpr std::uint64_t k_load_seed = 7;

struct load_wish {
  enum class kind : std::uint8_t { normal, balanced, zipf };
  kind what = kind::normal;
  double alpha = 1.0;  // of zipf, 0 to 8

  bool operator==(const load_wish&) const = default;
};

// "normal", "balanced", "zipf" or "zipf:ALPHA".
std::optional<load_wish> parse_load(std::string_view text);
std::string load_name(const load_wish& wish);

class bench_load final {
 public:
  // Requires: check_routing(routing) holds; workers >= 1.
  bench_load(const load_wish& wish, const kernels::routing_params& routing, std::uint32_t columns,
             std::uint32_t workers, std::uint64_t seed = k_load_seed);
  // logits [tokens, columns] of the next call.
  void fill(std::uint32_t tokens, std::span<float> logits);

 private:
  using normal_noise = std::normal_distribution<float>;
  std::variant<normal_noise, kernels::balanced_load, kernels::zipf_load> source_;
  std::mt19937_64 random_;
  std::uint32_t step_ = 0;
};

}  // namespace moetier::cli
