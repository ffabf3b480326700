#include <bit>
#include <cmath>
#include <random>

#include <fmt/core.h>

#include "actors/cli/bench_kernels_timing.hpp"
#include "actors/cli/bench_router_logits.hpp"
#include "kernels/backend.hpp"
#include "kernels/routing/router_logits.hpp"

namespace moetier::cli {
namespace {

// One dot product after the other, in one sum.
void plain_logits(const std::vector<std::uint16_t>& matrix, const std::vector<float>& x,
                  std::uint32_t columns, std::vector<float>& out) {
  const std::size_t width = matrix.size() / columns;
  for (std::size_t t = 0; t < x.size() / width; ++t) {
    for (std::size_t c = 0; c < columns; ++c) {
      float sum = 0;
      for (std::size_t i = 0; i < width; ++i)
        sum += x[t * width + i] * f32_from_bf16(matrix[c * width + i]);
      out[t * columns + c] = sum;
    }
  }
}

bool near(const std::vector<float>& a, const std::vector<float>& b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!(std::fabs(a[i] - b[i]) <= 1e-3F)) return false;
  }
  return true;
}

kernel_figures measure(std::uint32_t tokens, const kernel_bench_options& options) {
  constexpr std::uint32_t k_columns = 128;
  constexpr std::uint32_t k_width = 2048;
  std::mt19937_64 random(options.seed);
  std::normal_distribution<float> normal;
  std::vector<float> x(std::size_t{tokens} * k_width);
  for (float& v : x) v = normal(random);
  std::vector<std::uint16_t> stored(std::size_t{k_columns} * k_width);
  for (std::uint16_t& w : stored) w = bf16_from_f32(0.02F * normal(random));
  const kernels::router_matrix matrix{.weights = stored.data(),
                                      .type = dtype::bf16,
                                      .columns = k_columns,
                                      .width = k_width,
                                      .bias = nullptr};
  kernel_figures figures{.kernel = "router_logits",
                         .shape = fmt::format("bf16 {}x{} T {}", k_columns, k_width, tokens),
                         .unit = "ns/token",
                         .forms = {}};
  std::vector<float> plain(std::size_t{tokens} * k_columns);
  const auto run_plain = [&] { plain_logits(stored, x, k_columns, plain); };
  figures.forms.emplace_back("plain", median_ns(options.repeat, tokens, run_plain));
  const auto run_form = [&](const char* name, const kernels::router_dots& dots) {
    std::vector<float> out(plain.size());
    const auto form = [&] {
      kernels::router_logits_on(dots, matrix, x.data(), 4 * std::size_t{k_width}, tokens,
                                out.data(), 4 * std::size_t{k_columns});
    };
    figures.forms.emplace_back(name, median_ns(options.repeat, tokens, form));
    figures.agrees &= near(out, plain);
    return out;
  };
  const std::vector<float> scalar = run_form("scalar", kernels::k_router_dots_scalar);
  const kernels::cpu_features features = kernels::detect_cpu_features();
  if (features.avx2 && features.fma) {
    const std::vector<float> wide = run_form("avx2", kernels::k_router_dots_avx2);
    for (std::size_t i = 0; i < wide.size(); ++i)
      figures.agrees &=
          std::bit_cast<std::uint32_t>(wide[i]) == std::bit_cast<std::uint32_t>(scalar[i]);
  }
  return figures;
}

}  // namespace

std::vector<kernel_figures> bench_router_logits(const kernel_bench_options& options) {
  return {measure(1, options), measure(16, options)};
}

}  // namespace moetier::cli
