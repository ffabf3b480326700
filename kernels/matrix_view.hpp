#pragma once
// Reading one canonical matrix (schemas/model/weight_format.hpp) value by value: element (r, c) as
// the exactly dequantised f32, each product rounded once. Bytes are copied out, because a
// checkpoint promises no more than 2-byte alignment. It owns nothing. Thread: any.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "schemas/base/assert.hpp"
#include "schemas/base/dtype.hpp"
#include "schemas/base/small_floats.hpp"
#include "schemas/model/weight_format.hpp"

namespace moetier::kernels {

class matrix_view final {
 public:
  // Requires: bytes.size() == matrix_form_of(format, out, in).bytes.
  matrix_view(const weight_format& format, std::span<const std::byte> bytes, std::uint32_t out,
              std::uint32_t in) noexcept
      : format_(format),
        form_(matrix_form_of(format, out, in)),
        bytes_(bytes.data()),
        out_(out),
        in_(in),
        groups_(group_columns(format.quant) == 0
                    ? 0
                    : (std::size_t{in} + group_columns(format.quant) - 1) /
                          group_columns(format.quant)) {
    MOETIER_ASSERT(bytes.size() == form_.bytes);
  }

  std::size_t out() const noexcept { return out_; }
  std::size_t in() const noexcept { return in_; }
  const weight_format& format() const noexcept { return format_; }
  std::size_t groups() const noexcept { return groups_; }  // of scales along `in`; 0 = none

  // The stored code: 8 or 4 bits. Requires: format().quant is not none.
  std::uint8_t code(std::size_t r, std::size_t c) const noexcept {
    const std::size_t i = r * in_ + c;
    if (!is_four_bit(format_.quant)) return std::to_integer<std::uint8_t>(bytes_[i]);
    const auto pair = std::to_integer<unsigned>(bytes_[i / 2]);
    return static_cast<std::uint8_t>(i % 2 == 0 ? pair & 15u : pair >> 4);
  }

  // Where row r of the codes begins; rows of 4-bit codes are whole bytes.
  const std::byte* row(std::size_t r) const noexcept {
    return bytes_ + form_.codes_bytes / out_ * r;
  }

  // The scale of row r and group g in its stored type, at most 4 bytes, as bits.
  // Requires: the format has scales; g < groups(), 0 for fp8_tensor.
  std::uint32_t scale_bits(std::size_t r, std::size_t g) const noexcept {
    switch (format_.quant) {
      case quant_kind::fp8_tensor: return get<std::uint32_t>(form_.scales_offset, r);
      case quant_kind::fp8_block:
        return get<std::uint32_t>(form_.scales_offset, r / 128 * groups_ + g);
      case quant_kind::int4_g128: return get<std::uint16_t>(form_.scales_offset, r * groups_ + g);
      default: return get<std::uint8_t>(form_.scales_offset, r * groups_ + g);
    }
  }

  // s2 of nvfp4.
  float second_scale() const noexcept { return get<float>(form_.second_offset, 0); }

  float value(std::size_t r, std::size_t c) const noexcept {
    const std::size_t i = r * in_ + c;
    switch (format_.quant) {
      case quant_kind::none:
        if (format_.stored == dtype::bf16) return f32_from_bf16(get<std::uint16_t>(0, i));
        if (format_.stored == dtype::f16) return f32_from_f16(get<std::uint16_t>(0, i));
        return get<float>(0, i);
      case quant_kind::fp8_tensor:
        return f32_from_e4m3(code(r, c)) * std::bit_cast<float>(scale_bits(r, 0));
      case quant_kind::fp8_block:
        return f32_from_e4m3(code(r, c)) * std::bit_cast<float>(scale_bits(r, c / 128));
      case quant_kind::mxfp8:
        return f32_from_e4m3(code(r, c)) *
               f32_from_ue8m0(static_cast<std::uint8_t>(scale_bits(r, c / 32)));
      case quant_kind::mxfp4:
        return f32_from_e2m1(code(r, c)) *
               f32_from_ue8m0(static_cast<std::uint8_t>(scale_bits(r, c / 32)));
      case quant_kind::nvfp4:
        return f32_from_e2m1(code(r, c)) *
               f32_from_e4m3(static_cast<std::uint8_t>(scale_bits(r, c / 16))) * second_scale();
      case quant_kind::int4_g128:
        return f32_from_int4(code(r, c)) *
               f32_from_bf16(static_cast<std::uint16_t>(scale_bits(r, c / 128)));
    }
    return 0.0F;
  }

 private:
  template <class T>
  T get(std::size_t offset, std::size_t i) const noexcept {
    T value;
    std::memcpy(&value, bytes_ + offset + i * sizeof value, sizeof value);
    return value;
  }

  weight_format format_;
  matrix_form form_;
  const std::byte* bytes_;
  std::size_t out_;
  std::size_t in_;
  std::size_t groups_;
};

}  // namespace moetier::kernels
