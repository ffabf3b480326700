#include "tests/kernels/activation_avx2_probe.hpp"

#include "kernels/activation/activate.hpp"
#include "kernels/activation/activation_math.hpp"
#include "kernels/activation/lanes_avx2.hpp"

namespace moetier::kernels {

void activate_avx2(activation_kind kind, const activation_constants& constants, const float* g,
                   const float* l, std::size_t count, float* out) {
  const constants_as<lanes> c{lanes::of(constants.alpha), lanes::of(constants.beta),
                              lanes::of(clamp_limit(constants))};
  with_kind(kind, [&]<activation_kind Kind>() {
    for (std::size_t i = 0; i < count; i += 8)
      _mm256_storeu_ps(out + i, activated<Kind>(lanes::at(g + i), lanes::at(l + i), c).v);
  });
}

}  // namespace moetier::kernels
