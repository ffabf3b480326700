#include "actors/cli/bench_load.hpp"

#include <charconv>
#include <cmath>

#include <fmt/core.h>

namespace moetier::cli {
namespace {

constexpr double k_alpha_max = 8.0;  // beyond, one expert gets all

}  // namespace

std::optional<load_wish> parse_load(std::string_view text) {
  if (text == "normal") return load_wish{};
  if (text == "balanced") return load_wish{.what = load_wish::kind::balanced};
  if (text == "zipf") return load_wish{.what = load_wish::kind::zipf};
  constexpr std::string_view k_zipf = "zipf:";
  if (!text.starts_with(k_zipf)) return std::nullopt;
  load_wish wish{.what = load_wish::kind::zipf};
  const std::string_view number = text.substr(k_zipf.size());
  const auto [end, failure] =
      std::from_chars(number.data(), number.data() + number.size(), wish.alpha);
  const bool whole = failure == std::errc{} && end == number.data() + number.size();
  if (!whole || !(wish.alpha >= 0 && wish.alpha <= k_alpha_max)) return std::nullopt;
  return wish;
}

std::string load_name(const load_wish& wish) {
  switch (wish.what) {
    case load_wish::kind::balanced: return "balanced";
    case load_wish::kind::zipf: return fmt::format("zipf:{}", wish.alpha);
    case load_wish::kind::normal: break;
  }
  return "normal";
}

bench_load::bench_load(const load_wish& wish, const kernels::routing_params& routing,
                       std::uint32_t columns, std::uint32_t workers, std::uint64_t seed)
    : random_(seed) {
  if (wish.what == load_wish::kind::balanced) {
    source_.emplace<kernels::balanced_load>(routing, workers);
  } else if (wish.what == load_wish::kind::zipf) {
    source_.emplace<kernels::zipf_load>(columns, wish.alpha, seed);
  }
}

void bench_load::fill(std::uint32_t tokens, std::span<float> logits) {
  if (auto* noise = std::get_if<normal_noise>(&source_)) {
    for (float& x : logits) x = (*noise)(random_);
    return;
  }
  // A call of few tokens is a piece of a longer run, so that calls reach all experts in turn.
  const kernels::load_rows rows{
      .step = step_, .source = 0, .first_token = step_ * tokens, .tokens = tokens};
  ++step_;
  if (const auto* even = std::get_if<kernels::balanced_load>(&source_)) even->fill(rows, logits);
  if (const auto* skewed = std::get_if<kernels::zipf_load>(&source_)) skewed->fill(rows, logits);
}

}  // namespace moetier::cli
