#pragma once
// One f32 as a value of activation_math.hpp, for baseline code. Never include it in a unit built
// for a wider instruction set. Thread: any.

#include <cmath>

#include "kernels/math/host_device.hpp"
#include "kernels/math/house_math.hpp"

namespace moetier::kernels {

struct scalar_value {
  float v;

  MOETIER_HOST_DEVICE static scalar_value of(float x) noexcept { return {x}; }
  MOETIER_HOST_DEVICE friend scalar_value operator+(scalar_value a, scalar_value b) noexcept {
    return {a.v + b.v};
  }
  MOETIER_HOST_DEVICE friend scalar_value operator-(scalar_value a, scalar_value b) noexcept {
    return {a.v - b.v};
  }
  MOETIER_HOST_DEVICE friend scalar_value operator*(scalar_value a, scalar_value b) noexcept {
    return {a.v * b.v};
  }
  MOETIER_HOST_DEVICE friend scalar_value operator/(scalar_value a, scalar_value b) noexcept {
    return {a.v / b.v};
  }
  MOETIER_HOST_DEVICE friend scalar_value fused(scalar_value a, scalar_value b,
                                                scalar_value c) noexcept {
    return {std::fma(a.v, b.v, c.v)};
  }
  MOETIER_HOST_DEVICE friend scalar_value exp_of(scalar_value x) noexcept {
    return {house_exp(x.v)};
  }
  MOETIER_HOST_DEVICE friend scalar_value magnitude(scalar_value x) noexcept {
    return {std::fabs(x.v)};
  }
  MOETIER_HOST_DEVICE friend scalar_value negated(scalar_value x) noexcept { return {-x.v}; }
  MOETIER_HOST_DEVICE friend scalar_value larger(scalar_value a, scalar_value b) noexcept {
    return {a.v > b.v ? a.v : b.v};
  }
  MOETIER_HOST_DEVICE friend scalar_value smaller(scalar_value a, scalar_value b) noexcept {
    return {a.v < b.v ? a.v : b.v};
  }
  MOETIER_HOST_DEVICE friend scalar_value below(scalar_value x, scalar_value limit, scalar_value a,
                                                scalar_value b) noexcept {
    return x.v < limit.v ? a : b;
  }
  MOETIER_HOST_DEVICE friend scalar_value by_sign(scalar_value x, scalar_value a,
                                                  scalar_value b) noexcept {
    return std::signbit(x.v) ? a : b;
  }
  MOETIER_HOST_DEVICE friend scalar_value signed_as(scalar_value x, scalar_value sign) noexcept {
    return {std::copysign(x.v, sign.v)};
  }
};

}  // namespace moetier::kernels
