#pragma once
// The activation formulas, once, over a value type V: one f32 (scalar_value.hpp) or eight
// (lanes_avx2.hpp). Both run this one sequence of f32 operations, so their results are equal in
// bits. V gives V::of(float), + - * /, and by argument-dependent look-up fused(a, b, c) = a*b + c
// in one rounding, exp_of, magnitude, negated, larger(a, b) and smaller(a, b) (b where either is
// NaN), below(x, limit, a, b) = x < limit ? a : b, by_sign(x, a, b) = sign bit of x ? a : b,
// signed_as(x, s) = |x| with the sign of s.
//
// Accuracy against double, in units in the last place of max(|result|, |input|): silu 2.3, gelu 2,
// gelu's tanh form 3, cap 3; products add one rounding each. NaN passes. Thread: any.

#include "kernels/math/host_device.hpp"
#include "kernels/math/normal_constants.hpp"
#include "schemas/model/activation.hpp"

namespace moetier::kernels {

// Constants as values; an absent limit is +inf, which clamps nothing.
template <class V>
struct constants_as {
  V alpha;
  V beta;
  V limit;
};

// x * sigmoid(s)
template <class V>
MOETIER_HOST_DEVICE V gated(V x, V s) noexcept {
  return x / (V::of(1.0F) + exp_of(negated(s)));
}

// Horner's rule from the highest power down.
template <class V, class... Lower>
MOETIER_HOST_DEVICE V polynomial(V x, float highest, Lower... lower) noexcept {
  V p = V::of(highest);
  ((p = fused(p, x, V::of(lower))), ...);
  return p;
}

template <class V>
MOETIER_HOST_DEVICE V cdf_of(V x) noexcept {
  const V one = V::of(1.0F);
  const V t = one / fused(magnitude(x), V::of(k_half_root_half), one);
  const V fit = polynomial(t, k_cdf_q10, k_cdf_q9, k_cdf_q8, k_cdf_q7, k_cdf_q6, k_cdf_q5, k_cdf_q4,
                           k_cdf_q3, k_cdf_q2, k_cdf_q1, k_cdf_q0);
  const V q = V::of(0.5F) * t * exp_of(V::of(-0.5F) * x * x) * fit;
  return by_sign(x, q, one - q);
}

template <class V>
MOETIER_HOST_DEVICE V tanh_of(V x) noexcept {
  const V one = V::of(1.0F);
  const V a = magnitude(x);
  const V square = x * x;
  const V p = polynomial(square, k_tanh_t4, k_tanh_t3, k_tanh_t2, k_tanh_t1, k_tanh_t0);
  const V small = fused(x * square, p, x);
  const V large = signed_as(one - V::of(2.0F) / (exp_of(a + a) + one), x);
  return below(a, V::of(k_tanh_split), small, large);
}

template <class V>
MOETIER_HOST_DEVICE V gelu_of(V x) noexcept {
  return x * cdf_of(x);
}

// 0.5 * (1 + tanh(u)) is sigmoid(2u), which has no cancellation.
template <class V>
MOETIER_HOST_DEVICE V gelu_tanh_of(V x) noexcept {
  const V cubic = fused(V::of(k_gelu_cubic) * x * x, x, x);
  const V u = V::of(k_root_two_over_pi) * cubic;
  return gated(x, u + u);
}

template <class V>
MOETIER_HOST_DEVICE V cap_of(V x, V cap) noexcept {
  return cap * tanh_of(x / cap);
}

template <class V>
MOETIER_HOST_DEVICE V clamp_of(V x, V limit) noexcept {
  return smaller(limit, larger(negated(limit), x));
}

// g = gate output, l = linear output; g is not read where Kind has no gate.
template <activation_kind Kind, class V>
MOETIER_HOST_DEVICE V activated(V g, V l, const constants_as<V>& c) noexcept {
  using enum activation_kind;
  if constexpr (Kind == swiglu) {
    const V limited = smaller(c.limit, g);
    return gated(limited, limited) * clamp_of(l, c.limit);
  } else if constexpr (Kind == geglu) {
    return gelu_of(g) * l;
  } else if constexpr (Kind == gelu) {
    return gelu_of(l);
  } else if constexpr (Kind == relu) {
    return larger(V::of(0.0F), l);
  } else if constexpr (Kind == silu) {
    return gated(l, l);
  } else if constexpr (Kind == relu2) {
    const V positive = larger(V::of(0.0F), l);
    return positive * positive;
  } else if constexpr (Kind == swiglu_bias) {
    const V limited = smaller(c.limit, g);
    return gated(limited, c.alpha * limited) * (clamp_of(l, c.limit) + c.beta);
  } else if constexpr (Kind == situ) {
    return gated(cap_of(g, c.alpha), g) * cap_of(l, c.beta);
  } else if constexpr (Kind == swiglu_step) {
    return smaller(c.limit, gated(g, g)) * clamp_of(l, c.limit);
  } else {
    static_assert(Kind == geglu_tanh);
    return gelu_tanh_of(g) * l;
  }
}

// Calls body.template operator()<Kind>() for the kind that a value names.
template <class Body>
MOETIER_HOST_DEVICE void with_kind(activation_kind kind, Body&& body) {
  using enum activation_kind;
  switch (kind) {
    case swiglu: return body.template operator()<swiglu>();
    case geglu: return body.template operator()<geglu>();
    case gelu: return body.template operator()<gelu>();
    case relu: return body.template operator()<relu>();
    case silu: return body.template operator()<silu>();
    case relu2: return body.template operator()<relu2>();
    case swiglu_bias: return body.template operator()<swiglu_bias>();
    case situ: return body.template operator()<situ>();
    case swiglu_step: return body.template operator()<swiglu_step>();
    case geglu_tanh: return body.template operator()<geglu_tanh>();
  }
}

}  // namespace moetier::kernels
