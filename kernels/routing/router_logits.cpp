#include "kernels/routing/router_logits.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/backend.hpp"
#include "kernels/routing/row_kernels.hpp"
#include "schemas/base/assert.hpp"

namespace moetier::kernels {
namespace {

template <class Stored>
Stored stored_at(const void* row, std::size_t i) noexcept {
  Stored value;
  std::memcpy(&value, static_cast<const std::byte*>(row) + i * sizeof(Stored), sizeof(Stored));
  return value;
}

template <class Stored, float (*Widen)(Stored)>
float dot(const float* x, const void* row, std::uint32_t width) noexcept {
  float lanes[k_row_lanes] = {};
  const std::uint32_t padded = (width + k_row_lanes - 1) / k_row_lanes * k_row_lanes;
  for (std::uint32_t i = 0; i < width; ++i)
    lanes[i % k_row_lanes] =
        std::fma(x[i], Widen(stored_at<Stored>(row, i)), lanes[i % k_row_lanes]);
  for (std::uint32_t i = width; i < padded; ++i) lanes[i % k_row_lanes] += 0.0F;
  for (std::uint32_t half = k_row_lanes / 2; half > 0; half /= 2) {
    for (std::uint32_t i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  }
  return lanes[0];
}

template <class Stored, float (*Widen)(Stored)>
void dots(const float* x, const void* a, const void* b, std::uint32_t width, float* out) {
  out[0] = dot<Stored, Widen>(x, a, width);
  out[1] = dot<Stored, Widen>(x, b, width);
}

float same(float v) { return v; }
float from_bf16(std::uint16_t bits) { return f32_from_bf16(bits); }
float from_f16(std::uint16_t bits) { return f32_from_f16(bits); }

}  // namespace

constinit const router_dots k_router_dots_scalar = {
    .f32 = dots<float, same>,
    .bf16 = dots<std::uint16_t, from_bf16>,
    .f16 = dots<std::uint16_t, from_f16>,
};

void router_logits_on(const router_dots& table, const router_matrix& matrix, const float* x,
                      std::size_t x_pitch_bytes, std::uint32_t tokens, float* logits,
                      std::size_t logits_pitch_bytes) noexcept {
  MOETIER_ASSERT(matrix.type == dtype::f32 || matrix.type == dtype::bf16 ||
                 matrix.type == dtype::f16);
  const auto product = matrix.type == dtype::f32    ? table.f32
                       : matrix.type == dtype::bf16 ? table.bf16
                                                    : table.f16;
  const std::size_t row_bytes = matrix.width * dtype_bytes(matrix.type);
  const auto* const rows = static_cast<const std::byte*>(matrix.weights);
  // Two rows of W stay near while all tokens pass by.
  for (std::uint32_t c = 0; c < matrix.columns; c += 2) {
    const std::uint32_t d = std::min(c + 1, matrix.columns - 1);
    for (std::size_t t = 0; t < tokens; ++t) {
      const auto* const in =
          reinterpret_cast<const float*>(reinterpret_cast<const std::byte*>(x) + t * x_pitch_bytes);
      auto* const out =
          reinterpret_cast<float*>(reinterpret_cast<std::byte*>(logits) + t * logits_pitch_bytes);
      float pair[2];
      product(in, rows + c * row_bytes, rows + d * row_bytes, matrix.width, pair);
      out[c] = matrix.bias == nullptr ? pair[0] : pair[0] + matrix.bias[c];
      out[d] = matrix.bias == nullptr ? pair[d - c] : pair[d - c] + matrix.bias[d];
    }
  }
}

void router_logits(const router_matrix& matrix, const float* x, std::size_t x_pitch_bytes,
                   std::uint32_t tokens, float* logits, std::size_t logits_pitch_bytes) noexcept {
  const cpu_features features = detect_cpu_features();
  const router_dots& table =
      features.avx2 && features.fma ? k_router_dots_avx2 : k_router_dots_scalar;
  router_logits_on(table, matrix, x, x_pitch_bytes, tokens, logits, logits_pitch_bytes);
}

}  // namespace moetier::kernels
