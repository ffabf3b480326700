#include <bit>
#include <random>

#include <fmt/core.h>

#include "actors/cli/bench_kernels.hpp"
#include "actors/cli/bench_kernels_timing.hpp"
#include "actors/cli/bench_router_logits.hpp"
#include "actors/cli/bench_routing_plain.hpp"
#include "kernels/backend.hpp"
#include "kernels/routing/route_rows.hpp"

namespace moetier::cli {
namespace {

using kernels::routing_params;

constexpr std::uint32_t k_tokens = 256;

struct routing_case {
  routing_params params;
  bool biased = false;
  double aim = 0;
};

using method = routing_method;

// What the models that use each method have.
const routing_case k_cases[] = {
    {{{.method = method::renormalize}, 128, 8}, false, 9.0},
    {{{.method = method::deepseek_v3, .scaling = 2.5F, .groups = 8, .groups_kept = 4}, 256, 8},
     true,
     5.4},
    {{{.method = method::default_softmax}, 60, 4}},
    {{{.method = method::renormalize_naive}, 512, 10}},
    {{{.method = method::deepseek_v3, .scaling = 2.5F}, 384, 8}, true},
    {{{.method = method::llama4}, 128, 1}},
    {{{.method = method::minimax2}, 256, 8}, true},
    {{{.method = method::sigmoid_renorm}, 128, 8}},
    {{{.method = method::deepseek_v4, .scaling = 1.5F}, 256, 6}, true},
    {{{.method = method::deepseek_v2, .scaling = 16, .groups = 8, .groups_kept = 3}, 160, 6}},
    {{{.method = method::sqrt_softplus}, 256, 8}, true},
    {{{.method = method::sparse_mixer, .epsilon = 0.01F}, 16, 2}},
    {{{.method = method::softmax_group, .groups = 8, .groups_kept = 4}, 128, 8}},
    {{{.method = method::softmax_bias, .epsilon = 1e-12F}, 64, 6}, true},
    {{{.method = method::softmax_bias_raw, .scaling = 6, .identity_experts = 256}, 512, 12}, true},
    {{{.method = method::softmax_pnorm, .power = 2}, 16, 4}},
};

struct routed {
  std::vector<std::int32_t> ids;
  std::vector<float> weights;
};

// The share of positions whose expert is another one: rounding may swap near keys of the plain
// form.
double differing(const routed& a, const routed& b) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < a.ids.size(); ++i) count += a.ids[i] != b.ids[i] ? 1U : 0U;
  return static_cast<double>(count) / static_cast<double>(a.ids.size());
}

bool equal_bits(const routed& a, const routed& b) {
  for (std::size_t i = 0; i < a.weights.size(); ++i) {
    if (std::bit_cast<std::uint32_t>(a.weights[i]) != std::bit_cast<std::uint32_t>(b.weights[i]))
      return false;
  }
  return a.ids == b.ids;
}

std::string shape_of(const routing_params& p) {
  std::string text = fmt::format("E {} k {}", p.columns(), p.top_k);
  if (p.rule.groups > 1) text += fmt::format(" groups {}/{}", p.rule.groups, p.rule.groups_kept);
  return text;
}

expected<kernel_figures> measure(const routing_case& c, const kernel_bench_options& options) {
  constexpr double k_most_differing = 1e-3;
  const routing_params& p = c.params;
  if (auto ok = kernels::check_routing(p); !ok) return tl::unexpected(ok.error());
  std::mt19937_64 random(options.seed);
  std::normal_distribution<float> normal;
  std::vector<float> logits(std::size_t{k_tokens} * p.columns());
  for (float& x : logits) x = normal(random);
  layer_routing layer;
  if (c.biased) {
    layer.bias.resize(p.columns());
    // Probabilities are small, and so are the biases that balance them.
    const float size = p.rule.method >= method::softmax_group ? 0.001F : 0.1F;
    for (float& b : layer.bias) b = size * normal(random);
  }
  const kernels::route_input input{
      .logits = logits.data(), .pitch_bytes = p.columns() * sizeof(float), .tokens = k_tokens};
  const kernels::kernel_choice kernel = kernels::choose_kernel(p);
  const auto empty = [&] {
    const std::size_t count = std::size_t{k_tokens} * p.top_k;
    return routed{std::vector<std::int32_t>(count), std::vector<float>(count)};
  };
  kernel_figures figures{.kernel = std::string(routing_method_name(p.rule.method)),
                         .shape = shape_of(p),
                         .unit = "ns/token",
                         .forms = {},
                         .aim = c.aim,
                         .agrees = true,
                         .more = {},
                         .note = to_string(kernel)};
  routed plain = empty();
  const auto run_plain = [&] {
    for (std::size_t t = 0; t < k_tokens; ++t)
      route_plain(p, layer, &logits[t * p.columns()], &plain.ids[t * p.top_k],
                  &plain.weights[t * p.top_k]);
  };
  figures.forms.emplace_back("plain", median_ns(options.repeat, k_tokens, run_plain));
  const auto run_form = [&](const char* name, const kernels::row_kernels& rows) {
    routed r = empty();
    const auto form = [&] {
      figures.agrees &= kernels::route_rows(rows, kernel.kernel, p, layer, input,
                                            {.ids = r.ids, .weights = r.weights})
                            .has_value();
    };
    figures.forms.emplace_back(name, median_ns(options.repeat, k_tokens, form));
    figures.agrees &= differing(r, plain) <= k_most_differing;
    return r;
  };
  const routed scalar = run_form("scalar", kernels::k_row_kernels_scalar);
  figures.more.emplace_back("ids_differing_from_plain", differing(scalar, plain));
  const kernels::cpu_features features = kernels::detect_cpu_features();
  if (features.avx2 && features.fma) {
    const routed wide = run_form("avx2", kernels::k_row_kernels_avx2);
    figures.agrees &= equal_bits(scalar, wide);
  }
  return figures;
}

}  // namespace

expected<std::vector<kernel_figures>> bench_routing(const kernel_bench_options& options) {
  std::vector<kernel_figures> all;
  for (const routing_case& c : k_cases) {
    auto figures = measure(c, options);
    if (!figures) return tl::unexpected(figures.error());
    all.push_back(std::move(*figures));
  }
  for (kernel_figures& figures : bench_router_logits(options)) all.push_back(std::move(figures));
  return all;
}

}  // namespace moetier::cli
