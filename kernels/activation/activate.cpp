#include "kernels/activation/activate.hpp"

#include <limits>

#include "kernels/activation/activation_math.hpp"
#include "kernels/activation/scalar_value.hpp"

namespace moetier::kernels {

float activate(activation_kind kind, float g, float l, const activation_constants& constants) {
  const constants_as<scalar_value> c{scalar_value::of(constants.alpha),
                                     scalar_value::of(constants.beta),
                                     scalar_value::of(clamp_limit(constants))};
  float out = 0;
  with_kind(kind, [&]<activation_kind Kind>() {
    out = activated<Kind>(scalar_value::of(g), scalar_value::of(l), c).v;
  });
  return out;
}

float clamp_limit(const activation_constants& constants) noexcept {
  return constants.limit > 0 ? constants.limit : std::numeric_limits<float>::infinity();
}

}  // namespace moetier::kernels
