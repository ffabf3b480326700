// The fused kernels' limits: at each the fused kernel and the generic one are equal in bits, one
// beyond the generic one runs and says why.
#include "kernels/routing/routing_limits.hpp"

#include "tests/kernels/routing_shapes.hpp"

namespace moetier::kernels {
namespace {

using m = routing_method;

routing_params shape(routing_rule rule, std::uint32_t experts, std::uint32_t k) {
  return {.rule = rule, .experts = experts, .top_k = k};
}

routing_rule grouped(std::uint32_t groups, std::uint32_t kept) {
  return {.method = m::deepseek_v3, .groups = groups, .groups_kept = kept};
}

struct limit_case {
  routing_params at;
  routing_params beyond;
  std::string kernel;
  std::string fallback;
};

const std::vector<limit_case> k_cases = {
    {shape({.method = m::default_softmax}, 512, 16), shape({.method = m::default_softmax}, 513, 16),
     "softmax_top_k", "generic (limit: experts 513 > 512)"},
    {shape({.method = m::renormalize}, 512, 16), shape({.method = m::renormalize}, 512, 17),
     "softmax_top_k", "generic (limit: top_k 17 > 16)"},
    {shape({.method = m::renormalize_naive}, 512, 16),
     shape({.method = m::renormalize_naive}, 513, 17), "softmax_top_k",
     "generic (limit: experts 513 > 512)"},
    {shape({.method = m::deepseek_v3}, 1024, 32), shape({.method = m::deepseek_v3}, 1025, 32),
     "single_group", "generic (limit: experts 1025 > 1024)"},
    {shape({.method = m::minimax2}, 1024, 32), shape({.method = m::minimax2}, 1024, 33),
     "single_group", "generic (limit: top_k 33 > 32)"},
    {shape({.method = m::deepseek_v4}, 1024, 32), shape({.method = m::deepseek_v4}, 1025, 32),
     "single_group", "generic (limit: experts 1025 > 1024)"},
    {shape({.method = m::sqrt_softplus}, 1024, 32), shape({.method = m::sqrt_softplus}, 1024, 33),
     "single_group", "generic (limit: top_k 33 > 32)"},
    {shape(grouped(8, 4), 256, 8), shape(grouped(8, 4), 264, 8), "grouped",
     "generic (limit: experts 264 > 256)"},
    {shape(grouped(8, 4), 256, 8), shape(grouped(8, 4), 256, 9), "grouped",
     "generic (limit: top_k 9 > 8)"},
    {shape(grouped(32, 32), 256, 8), shape(grouped(33, 5), 231, 8), "grouped",
     "generic (limit: groups 33 > 32)"},
    {shape(grouped(8, 8), 256, 8), shape(grouped(7, 5), 231, 8), "grouped",
     "generic (limit: group_width 33 > 32)"},
};

TEST(routing_limits, name_the_fused_kernel_at_each_limit_and_the_reason_beyond) {
  for (const limit_case& c : k_cases) {
    EXPECT_EQ(to_string(choose_kernel(c.at)), c.kernel);
    EXPECT_EQ(to_string(choose_kernel(c.beyond)), c.fallback);
  }
}

TEST(routing_limits, answer_the_limit_as_numbers) {
  const kernel_choice c = choose_kernel(shape(grouped(8, 4), 256, 9));
  EXPECT_EQ(c, (kernel_choice{routing_kernel::generic, "limit", "top_k", 9, 8}));
}

TEST(routing_limits, send_methods_without_a_fused_form_and_hash_layers_to_the_generic_kernel) {
  for (const m method :
       {m::llama4, m::sigmoid_renorm, m::deepseek_v2, m::sparse_mixer, m::static_table,
        m::round_robin, m::softmax_group, m::softmax_bias, m::softmax_bias_raw, m::softmax_pnorm})
    EXPECT_EQ(to_string(choose_kernel(shape({.method = method}, 8, 2))), "generic (no_fused_form)");
  EXPECT_EQ(to_string(choose_kernel(shape({.method = m::deepseek_v4}, 8, 2), true)),
            "generic (no_fused_form)");
}

TEST(routing_limits, do_not_show_in_the_results) {
  std::mt19937 random(71);
  std::normal_distribution<float> normal;
  for (const limit_case& c : k_cases) {
    for (const routing_params& p : {c.at, c.beyond}) {
      const bool may_bias = p.rule.method != m::default_softmax &&
                            p.rule.method != m::renormalize &&
                            p.rule.method != m::renormalize_naive;
      layer_routing layer = layer_of({p, may_bias}, random);
      const routed r = route_every_form(p, rows_of(p.columns(), 60, random), layer, {}, true);
      EXPECT_EQ(r.refusal, "");
    }
  }
}

}  // namespace
}  // namespace moetier::kernels
