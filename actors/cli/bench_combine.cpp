// The source half's fixed-order sum of a token's expert rows: weighted sums of k rows of H, and the
// rounding of the result to bf16. Plain is the loop as one writes it first, without vectors.
#include <array>
#include <cstring>
#include <span>

#include <fmt/core.h>

#include "actors/cli/bench_kernels.hpp"
#include "actors/cli/bench_kernels_timing.hpp"
#include "actors/cli/random_expert.hpp"
#include "transport/client/source/row_arithmetic.hpp"

namespace moetier::cli {
namespace {

constexpr std::size_t k_hidden = 2048;
constexpr std::size_t k_picks = 8;
constexpr double k_aim = 7.0;

struct combine_case {
  const char* name;
  std::size_t tokens;  // each with its own rows
  bool narrow;         // the result goes out as bf16
};
constexpr combine_case k_cases[] = {{"sum of 8 rows, warm", 1, false},
                                    {"sum of 8 rows to bf16, rows from memory", 1024, true}};

struct combined {
  std::vector<float> sum = std::vector<float>(k_hidden);
  std::vector<std::uint16_t> narrowed = std::vector<std::uint16_t>(k_hidden);
};

// One multiply and one add an element.
[[gnu::noinline, gnu::optimize("no-tree-vectorize")]] void sum_plain(const float* rows,
                                                                     std::span<const float> weights,
                                                                     float* sum) {
  for (std::size_t h = 0; h < k_hidden; ++h) {
    float total = 0;
    for (std::size_t j = 0; j < k_picks; ++j) total += weights[j] * rows[j * k_hidden + h];
    sum[h] = total;
  }
}

void sum_by(const client::row_arithmetic& arithmetic, const float* rows,
            std::span<const float> weights, float* sum) {
  std::array<client::row_term, k_picks> terms;
  for (std::size_t j = 0; j < k_picks; ++j) terms[j] = {weights[j], rows + j * k_hidden};
  arithmetic.sum(sum, terms, k_hidden);
}

bool near_by(const combined& a, const combined& b) {
  for (std::size_t h = 0; h < k_hidden; ++h) {
    if (!(std::abs(a.sum[h] - b.sum[h]) <= 1e-5F * (1 + std::abs(b.sum[h])))) return false;
  }
  return true;
}

kernel_figures measure(const combine_case& c, const kernel_bench_options& options) {
  const std::vector<float> rows = random_values(c.tokens * k_picks * k_hidden, 1.0F, options.seed);
  const std::vector<float> weights = random_values(k_picks, 0.5F, options.seed + 1);
  kernel_figures figures{.kernel = c.name,
                         .shape = fmt::format("k {} H {}", k_picks, k_hidden),
                         .unit = "ns/token",
                         .forms = {},
                         .aim = c.narrow ? 0 : k_aim};
  const auto run_form = [&](const char* name, auto&& sum, const client::row_arithmetic& narrow) {
    combined result;
    const auto form = [&] {
      for (std::size_t t = 0; t < c.tokens; ++t) {
        sum(&rows[t * k_picks * k_hidden], result.sum.data());
        if (c.narrow)
          narrow.narrow(result.narrowed.data(), dtype::bf16, result.sum.data(), k_hidden);
      }
    };
    figures.forms.emplace_back(name,
                               median_ns(options.repeat, static_cast<double>(c.tokens), form));
    return result;
  };
  const auto arithmetic_form = [&](const char* name, const client::row_arithmetic& a) {
    return run_form(
        name, [&](const float* from, float* sum) { sum_by(a, from, weights, sum); }, a);
  };
  const client::row_arithmetic& scalar = client::pick_row_arithmetic({});
  const client::row_arithmetic& best = client::pick_row_arithmetic(kernels::detect_cpu_features());
  const combined plain = run_form(
      "plain", [&](const float* from, float* sum) { sum_plain(from, weights, sum); }, scalar);
  const combined by_scalar = arithmetic_form("scalar", scalar);
  figures.agrees = near_by(by_scalar, plain);
  if (&best != &scalar) {
    const combined wide = arithmetic_form("avx2", best);
    figures.agrees &=
        wide.narrowed == by_scalar.narrowed &&
        std::memcmp(wide.sum.data(), by_scalar.sum.data(), k_hidden * sizeof(float)) == 0;
  }
  return figures;
}

}  // namespace

expected<std::vector<kernel_figures>> bench_combine(const kernel_bench_options& options) {
  std::vector<kernel_figures> all;
  for (const combine_case& c : k_cases) all.push_back(measure(c, options));
  return all;
}

}  // namespace moetier::cli
