#include "workers/weights/canonical_check.hpp"

#include <cmath>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

namespace moetier::workers {
namespace {

constexpr std::uint32_t k_out = 130;
constexpr std::uint32_t k_in = 256;

// A sound matrix: every code 1 or so, every scale 1.
class canonical {
 public:
  explicit canonical(quant_kind quant)
      : format_{.quant = quant}, form_(matrix_form_of(format_, k_out, k_in)), bytes_(form_.bytes) {
    std::fill_n(bytes_.begin(), form_.codes_bytes, std::byte{0x22});
    for (std::size_t at = 0; at < form_.scales_bytes; at += width()) set_scale(at / width(), 1.0F);
    if (quant == quant_kind::nvfp4) set_second(1.0F);
  }

  std::size_t width() const {
    switch (format_.quant) {
      case quant_kind::int4_g128: return 2;
      case quant_kind::fp8_tensor:
      case quant_kind::fp8_block: return 4;
      default: return 1;
    }
  }
  // 0, 1 or NaN.
  void set_scale(std::size_t index, float value) {
    std::byte* const at = bytes_.data() + form_.scales_offset + index * width();
    if (width() == 4) std::memcpy(at, &value, 4);
    const bool mx = format_.quant == quant_kind::mxfp4 || format_.quant == quant_kind::mxfp8;
    if (width() == 1 && std::isnan(value)) *at = mx ? std::byte{0xff} : std::byte{0x7f};
    if (width() == 1 && !std::isnan(value))
      *at = mx ? std::byte{127} : (value == 0 ? std::byte{0x80} : std::byte{0x38});
    if (width() == 2) {
      const std::uint16_t bits = bf16_from_f32(value);
      std::memcpy(at, &bits, 2);
    }
  }
  void set_second(float value) { std::memcpy(bytes_.data() + form_.second_offset, &value, 4); }
  void set_code(std::size_t byte, int value) { bytes_[byte] = static_cast<std::byte>(value); }
  std::size_t scales() const { return form_.scales_bytes / width(); }
  std::size_t codes() const { return form_.codes_bytes; }
  std::string fault() const { return find_fault(format_, bytes_, k_out, k_in); }

 private:
  weight_format format_;
  matrix_form form_;
  std::vector<std::byte> bytes_;
};

constexpr std::array k_all{quant_kind::fp8_tensor, quant_kind::fp8_block, quant_kind::mxfp8,
                           quant_kind::mxfp4,      quant_kind::nvfp4,     quant_kind::int4_g128};

TEST(canonical_check, sound_matrices_and_unquantised_ones_pass) {
  for (const quant_kind quant : k_all) EXPECT_EQ(canonical(quant).fault(), "") << quant_name(quant);
  const weight_format plain;
  const std::vector<std::byte> bytes(matrix_form_of(plain, 3, 5).bytes, std::byte{0xff});
  EXPECT_EQ(find_fault(plain, bytes, 3, 5), "");
}

TEST(canonical_check, every_scale_counts) {
  for (const quant_kind quant : k_all) {
    for (std::size_t n = 0; n < canonical(quant).scales(); ++n) {
      canonical matrix(quant);
      matrix.set_scale(n, NAN);
      EXPECT_TRUE(matrix.fault().starts_with("a scale that is not finite"))
          << quant_name(quant) << n;
    }
  }
  canonical matrix(quant_kind::nvfp4);
  matrix.set_second(INFINITY);
  EXPECT_EQ(matrix.fault(), "a second scale that is not finite");
}

TEST(canonical_check, nan_codes_of_e4m3_count_wherever_they_stand) {
  for (const quant_kind quant :
       {quant_kind::fp8_tensor, quant_kind::fp8_block, quant_kind::mxfp8}) {
    for (const std::size_t at :
         {std::size_t{0}, canonical(quant).codes() / 2, canonical(quant).codes() - 1}) {
      for (const int code : {0x7f, 0xff}) {
        canonical matrix(quant);
        matrix.set_code(at, code);
        EXPECT_EQ(matrix.fault(), "a code that is not a number");
      }
      canonical large(quant);
      large.set_code(at, 0x7e);
      EXPECT_EQ(large.fault(), "") << "448 is the largest number";
    }
  }
}

TEST(canonical_check, a_scale_of_zero_stands_over_zeros_only) {
  for (const quant_kind quant :
       {quant_kind::fp8_tensor, quant_kind::fp8_block, quant_kind::nvfp4, quant_kind::int4_g128}) {
    canonical matrix(quant);
    const std::size_t last = matrix.scales() - 1;
    matrix.set_scale(last, 0.0F);
    EXPECT_TRUE(matrix.fault().starts_with("a scale 0 over codes that are not"))
        << quant_name(quant);
    // The last group's codes: the end of the last row, or rows 128 and 129 of the last columns.
    const int zero = quant == quant_kind::int4_g128 ? 0x88 : 0;
    for (std::size_t byte = 0; byte < matrix.codes(); ++byte) {
      const std::size_t per_row = matrix.codes() / k_out;
      const bool last_row =
          quant == quant_kind::fp8_block ? byte >= 128 * per_row : byte >= (k_out - 1) * per_row;
      const std::size_t group = group_columns(quant) == 0 ? k_in : group_columns(quant);
      if (last_row && byte % per_row >= (k_in - group) * per_row / k_in)
        matrix.set_code(byte, zero);
    }
    EXPECT_EQ(matrix.fault(), "") << quant_name(quant);
  }
}

}  // namespace
}  // namespace moetier::workers
