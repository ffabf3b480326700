#include "kernels/quant/row_quantiser.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "schemas/base/small_floats.hpp"

namespace moetier::kernels {
namespace {

void quantise_block(const float* x, std::size_t count, std::uint8_t* codes, float* scale) {
  // Magnitudes compare as whole numbers, and NaN above all.
  std::uint32_t most = 0;
  for (std::size_t i = 0; i < count; ++i)
    most = std::max(most, std::bit_cast<std::uint32_t>(x[i]) & 0x7fffffffu);
  if (most == 0 || most >= 0x7f800000u) {
    *scale = most == 0 ? 1.0F : std::numeric_limits<float>::quiet_NaN();
    std::fill_n(codes, count, most == 0 ? std::uint8_t{0} : std::uint8_t{0x7f});
    return;
  }
  *scale = std::max(std::bit_cast<float>(most) / k_e4m3_max, 0x1p-126F);
  const float inverse = 1.0F / *scale;
  for (std::size_t i = 0; i < count; ++i) codes[i] = e4m3_from_f32(x[i] * inverse);
}

}  // namespace

void quantise_row(const float* row, std::size_t columns, std::uint8_t* codes, float* scales) {
  for (std::size_t c = 0; c < columns; c += k_row_block)
    quantise_block(row + c, std::min(k_row_block, columns - c), codes + c,
                   scales + c / k_row_block);
}

quantise_row_fn pick_row_quantiser(const cpu_features& features) noexcept {
  return features.avx2 && features.fma ? k_row_quantiser_avx2.quantise_row : quantise_row;
}

}  // namespace moetier::kernels
