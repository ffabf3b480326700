#include "workers/weights/canonical_check.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include <fmt/core.h>

#include "schemas/base/assert.hpp"

namespace moetier::workers {
namespace {

constexpr std::uint8_t k_e4m3_nan = 0x7f;  // of either sign
constexpr std::uint8_t k_e8m0_nan = 0xff;

template <class T>
T at(std::span<const std::byte> bytes, std::size_t index) {
  T value{};
  std::memcpy(&value, bytes.data() + index * sizeof(T), sizeof(T));
  return value;
}

bool has_e4m3_nan(std::span<const std::byte> codes) {
  // Without an early exit, so that it runs as wide as the machine is.
  unsigned found = 0;
  for (const std::byte code : codes)
    found |= static_cast<unsigned>((static_cast<std::uint8_t>(code) & 0x7fu) == k_e4m3_nan);
  return found != 0;
}

enum class scale_state : std::uint8_t { good, zero, bad };

struct grid {
  std::size_t rows = 0;     // rows of codes under one scale
  std::size_t columns = 0;  // columns
  std::size_t across = 0;   // scales of one row of scales
};

grid grid_of(quant_kind quant, std::uint32_t in) {
  const std::size_t group = group_columns(quant);
  if (group == 0) return {1, in, 1};
  return {quant == quant_kind::fp8_block ? std::size_t{128} : 1, group, (in + group - 1) / group};
}

scale_state state_of_f32(float scale) {
  if (!std::isfinite(scale)) return scale_state::bad;
  return scale == 0.0F ? scale_state::zero : scale_state::good;
}

scale_state state_of(quant_kind quant, std::span<const std::byte> scales, std::size_t index) {
  switch (quant) {
    case quant_kind::mxfp8:
    case quant_kind::mxfp4:
      return at<std::uint8_t>(scales, index) == k_e8m0_nan ? scale_state::bad : scale_state::good;
    case quant_kind::nvfp4: {
      const unsigned code = at<std::uint8_t>(scales, index) & 0x7fu;
      return code == k_e4m3_nan ? scale_state::bad
                                : (code == 0 ? scale_state::zero : scale_state::good);
    }
    case quant_kind::int4_g128:
      return state_of_f32(f32_from_bf16(at<std::uint16_t>(scales, index)));
    default: return state_of_f32(at<float>(scales, index));
  }
}

// Whether all codes of one rectangle have the value 0.
bool all_zero(quant_kind quant, std::span<const std::byte> codes, std::size_t in, std::size_t row,
              std::size_t rows, std::size_t column, std::size_t columns) {
  const std::size_t per_byte = is_four_bit(quant) ? 2 : 1;
  // Both signs of zero; int4 stores the code + 8.
  const std::uint8_t mask = quant == quant_kind::int4_g128 ? 0xff : per_byte == 2 ? 0x77 : 0x7f;
  const std::uint8_t zero = quant == quant_kind::int4_g128 ? 0x88 : 0;
  for (std::size_t r = row; r < row + rows; ++r) {
    const auto line = codes.subspan((r * in + column) / per_byte, columns / per_byte);
    if (!std::ranges::all_of(
            line, [&](std::byte code) { return (static_cast<std::uint8_t>(code) & mask) == zero; }))
      return false;
  }
  return true;
}

}  // namespace

std::string find_fault(const weight_format& format, std::span<const std::byte> bytes,
                       std::uint32_t out, std::uint32_t in) {
  const quant_kind quant = format.quant;
  const matrix_form form = matrix_form_of(format, out, in);
  MOETIER_ASSERT(bytes.size() == form.bytes);
  if (quant == quant_kind::none) return {};
  const auto codes = bytes.first(form.codes_bytes);
  const auto scales = bytes.subspan(form.scales_offset, form.scales_bytes);
  if (!is_four_bit(quant) && has_e4m3_nan(codes)) return "a code that is not a number";
  const grid g = grid_of(quant, in);
  for (std::size_t row = 0, index = 0; row < out; row += g.rows) {
    for (std::size_t s = 0; s < g.across; ++s, ++index) {
      const scale_state state = state_of(quant, scales, index);
      if (state == scale_state::good) continue;
      if (state == scale_state::bad)
        return fmt::format("a scale that is not finite, row {} group {}", row, s);
      const std::size_t column = s * g.columns;
      if (!all_zero(quant, codes, in, row, std::min<std::size_t>(g.rows, out - row), column,
                    std::min<std::size_t>(g.columns, in - column)))
        return fmt::format("a scale 0 over codes that are not, row {} group {}", row, s);
    }
  }
  if (quant != quant_kind::nvfp4) return {};
  const scale_state second = state_of_f32(at<float>(bytes.subspan(form.second_offset), 0));
  if (second == scale_state::bad) return "a second scale that is not finite";
  if (second == scale_state::zero && !all_zero(quant, codes, in, 0, out, 0, in))
    return "a second scale 0 over codes that are not";
  return {};
}

}  // namespace moetier::workers
