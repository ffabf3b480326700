#include "kernels/routing/method_form.hpp"

#include "schemas/base/assert.hpp"

namespace moetier::kernels {
namespace {

using s = score_kind;
using w = weight_kind;
using g = group_kind;

constexpr method_form k_forms[k_routing_methods] = {
    /* default_softmax   */ {s::softmax, w::score},
    /* renormalize       */ {s::none, w::chosen_softmax},
    /* deepseek_v3       */ {s::sigmoid, w::share, true, g::pairs, true, true},
    /* llama4            */ {s::sigmoid, w::score},
    /* renormalize_naive */ {s::none, w::chosen_softmax},
    /* minimax2          */ {s::sigmoid, w::share, true, g::none, true, false},
    /* sigmoid_renorm    */ {s::sigmoid, w::share, false, g::none, false, true},
    /* deepseek_v4       */ {s::root_softplus, w::share, true, g::none, true, false},
    /* unspecified       */ {},
    /* deepseek_v2       */ {s::softmax, w::score, false, g::largest, true, false},
    /* sqrt_softplus     */ {s::root_softplus, w::share, true, g::none, true, false},
    /* sparse_mixer      */ {s::none, w::near_softmax},
    /* static_table      */ {s::none, w::table},
    /* round_robin       */ {s::none, w::table},
    /* softmax_group     */ {s::softmax, w::share, false, g::pairs, true, true},
    /* softmax_bias      */ {s::softmax, w::floored_share, true},
    /* softmax_bias_raw  */ {s::softmax, w::score, true, g::none, true, false},
    /* softmax_pnorm     */ {s::none, w::power_norm},
};

}  // namespace

const method_form& form_of(routing_method method) noexcept {
  const auto at = static_cast<std::size_t>(method);
  MOETIER_ASSERT(at < k_routing_methods);
  return k_forms[at];
}

}  // namespace moetier::kernels
