#pragma once
// The house's dot product for adapters: element k belongs to lane k mod 8, each lane is one chain
// of fma over ascending k from +0, the last eight are filled up with zeros, and the lanes are
// folded 4, 2, 1. The order depends on the length alone; the AVX2 form is equal in bits. For
// baseline code. Thread: any.

#include <cmath>
#include <cstddef>
#include <initializer_list>

namespace moetier::kernels {

inline float lane_dot(const float* a, const float* b, std::size_t count) noexcept {
  float lanes[8] = {};
  for (std::size_t first = 0; first < count; first += 8) {
    for (std::size_t i = 0; i < 8; ++i) {
      const bool inside = first + i < count;
      lanes[i] = std::fma(inside ? a[first + i] : 0.0F, inside ? b[first + i] : 0.0F, lanes[i]);
    }
  }
  for (std::size_t half : {4u, 2u, 1u}) {
    for (std::size_t i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  }
  return lanes[0];
}

}  // namespace moetier::kernels
