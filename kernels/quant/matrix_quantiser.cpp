#include "kernels/quant/matrix_quantiser.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include <fmt/core.h>

#include "kernels/matrix_view.hpp"
#include "schemas/base/small_floats.hpp"

namespace moetier::kernels {
namespace {

// A matrix on its way into canonical bytes; values are given row-major.
struct writer {
  weight_format format;
  std::span<const float> values;
  std::size_t out;
  std::size_t in;
  matrix_form form;
  std::span<std::byte> bytes;

  float value(std::size_t r, std::size_t c) const { return values[r * in + c]; }

  template <class T>
  void put(std::size_t offset, std::size_t i, T value) const {
    std::memcpy(bytes.data() + offset + i * sizeof value, &value, sizeof value);
  }
  template <class T>
  void put_scale(std::size_t i, T value) const {
    put(form.scales_offset, i, value);
  }
  void put_code(std::size_t r, std::size_t c, std::uint8_t code) const {
    const std::size_t i = r * in + c;
    if (!is_four_bit(format.quant)) {
      bytes[i] = std::byte{code};
      return;
    }
    bytes[i / 2] |= std::byte{static_cast<std::uint8_t>(i % 2 == 0 ? code : code << 4)};
  }

  // The largest magnitude in rows [r, r_end) and columns [c, c_end).
  float amax(std::size_t r, std::size_t r_end, std::size_t c, std::size_t c_end) const {
    float most = 0;
    for (; r < r_end; ++r) {
      for (std::size_t i = c; i < c_end; ++i) most = std::max(most, std::fabs(value(r, i)));
    }
    return most;
  }

  template <class Code>
  void put_codes(std::size_t r, std::size_t r_end, std::size_t c, std::size_t c_end,
                 Code&& code) const {
    for (; r < r_end; ++r) {
      for (std::size_t i = c; i < c_end; ++i) put_code(r, i, code(value(r, i)));
    }
  }

  // Groups of `columns` in every row: body(index of the group, row, first column, end).
  template <class Body>
  void each_group(std::size_t columns, Body&& body) const {
    for (std::size_t r = 0; r < out; ++r) {
      for (std::size_t c = 0; c < in; c += columns)
        body(r * (in / columns) + c / columns, r, c, c + columns);
    }
  }
};

float scale_or_one(float scale) { return scale > 0 ? scale : 1.0F; }

auto e4m3_under(float scale) {
  return [scale](float x) { return e4m3_from_f32(x / scale); };
}
auto e2m1_under(float scale) {
  return [scale](float x) { return e2m1_from_f32(x / scale); };
}
auto int4_under(float scale) {
  return [scale](float x) {
    const float q = std::clamp(std::nearbyint(x / scale), -8.0F, 7.0F);
    return static_cast<std::uint8_t>(static_cast<int>(q) + 8);
  };
}

void write_plain(const writer& w) {
  for (std::size_t i = 0; i < w.values.size(); ++i) {
    switch (w.format.stored) {
      case dtype::bf16: w.put(0, i, bf16_from_f32(w.values[i])); break;
      case dtype::f16: w.put(0, i, f16_from_f32(w.values[i])); break;
      default: w.put(0, i, w.values[i]); break;
    }
  }
}

void write_fp8_tensor(const writer& w) {
  const float scale = scale_or_one(w.amax(0, w.out, 0, w.in) / k_e4m3_max);
  w.put_codes(0, w.out, 0, w.in, e4m3_under(scale));
  for (std::size_t r = 0; r < w.out; ++r) w.put_scale(r, scale);
}

void write_fp8_block(const writer& w) {
  std::size_t block = 0;
  for (std::size_t r = 0; r < w.out; r += 128) {
    const std::size_t r_end = std::min(w.out, r + 128);
    for (std::size_t c = 0; c < w.in; c += 128) {
      const std::size_t c_end = std::min(w.in, c + 128);
      const float scale = scale_or_one(w.amax(r, r_end, c, c_end) / k_e4m3_max);
      w.put_codes(r, r_end, c, c_end, e4m3_under(scale));
      w.put_scale(block++, scale);
    }
  }
}

// mxfp8 and mxfp4: a power of two per group, so that amax / scale is at most `most`.
template <class Under>
void write_powers(const writer& w, float most, Under&& under) {
  w.each_group(32, [&](std::size_t group, std::size_t r, std::size_t c, std::size_t c_end) {
    const float amax = w.amax(r, r + 1, c, c_end);
    const std::uint8_t exponent = amax > 0 ? ue8m0_at_least(amax / most) : std::uint8_t{127};
    w.put_codes(r, r + 1, c, c_end, under(f32_from_ue8m0(exponent)));
    w.put_scale(group, exponent);
  });
}

void write_nvfp4(const writer& w) {
  const float second = scale_or_one(w.amax(0, w.out, 0, w.in) / (k_e2m1_max * k_e4m3_max));
  w.put(w.form.second_offset, 0, second);
  w.each_group(16, [&](std::size_t group, std::size_t r, std::size_t c, std::size_t c_end) {
    const float amax = w.amax(r, r + 1, c, c_end);
    // A scale that rounds to 0 would lose the group; the smallest code keeps what it can.
    const std::uint8_t code =
        amax > 0 ? std::max<std::uint8_t>(e4m3_from_f32(amax / k_e2m1_max / second), 1)
                 : e4m3_from_f32(1.0F);
    w.put_codes(r, r + 1, c, c_end, e2m1_under(f32_from_e4m3(code) * second));
    w.put_scale(group, code);
  });
}

void write_int4(const writer& w) {
  w.each_group(128, [&](std::size_t group, std::size_t r, std::size_t c, std::size_t c_end) {
    const std::uint16_t scale = bf16_from_f32(scale_or_one(w.amax(r, r + 1, c, c_end) / 7.0F));
    w.put_codes(r, r + 1, c, c_end, int4_under(scale_or_one(f32_from_bf16(scale))));
    w.put_scale(group, scale);
  });
}

quantise_error error_of(const writer& w) {
  const matrix_view stored(w.format, w.bytes, static_cast<std::uint32_t>(w.out),
                           static_cast<std::uint32_t>(w.in));
  quantise_error error;
  double squares = 0;
  double differences = 0;
  for (std::size_t r = 0; r < w.out; ++r) {
    for (std::size_t c = 0; c < w.in; ++c) {
      const double given = w.value(r, c);
      const double difference = double{stored.value(r, c)} - given;
      error.max_abs = std::max(error.max_abs, std::fabs(difference));
      squares += given * given;
      differences += difference * difference;
    }
  }
  error.rms_relative = squares > 0 ? std::sqrt(differences / squares) : 0.0;
  return error;
}

}  // namespace

expected<quantised_matrix> quantise_matrix(const weight_format& to, std::span<const float> values,
                                           std::uint32_t out, std::uint32_t in) {
  MOETIER_ASSERT(out > 0 && in > 0 && values.size() == std::size_t{out} * in);
  if (!fits_groups(to.quant, in)) {
    return fail(reason::invalid_shape,
                fmt::format("input size of {} weights", quant_name(to.quant)), in,
                fmt::format("multiples of {}", group_columns(to.quant)));
  }
  const auto bad =
      std::find_if(values.begin(), values.end(), [](float value) { return !std::isfinite(value); });
  if (bad != values.end()) {
    const auto at = static_cast<std::size_t>(bad - values.begin());
    return fail(reason::weight_mismatch, fmt::format("weight at [{}, {}]", at / in, at % in), *bad,
                "finite values");
  }
  quantised_matrix made;
  const matrix_form form = matrix_form_of(to, out, in);
  made.bytes.resize(form.bytes);
  const writer w{to, values, out, in, form, made.bytes};
  switch (to.quant) {
    case quant_kind::none: write_plain(w); break;
    case quant_kind::fp8_tensor: write_fp8_tensor(w); break;
    case quant_kind::fp8_block: write_fp8_block(w); break;
    case quant_kind::mxfp8: write_powers(w, k_e4m3_max, e4m3_under); break;
    case quant_kind::mxfp4: write_powers(w, k_e2m1_max, e2m1_under); break;
    case quant_kind::nvfp4: write_nvfp4(w); break;
    case quant_kind::int4_g128: write_int4(w); break;
  }
  made.error = error_of(w);
  return made;
}

expected<quantised_matrix> quantise_matrix(const weight_format& to, const weight_format& from,
                                           std::span<const std::byte> bytes, std::uint32_t out,
                                           std::uint32_t in) {
  MOETIER_ASSERT(from.quant == quant_kind::none);
  const matrix_view view(from, bytes, out, in);
  std::vector<float> values;
  values.reserve(std::size_t{out} * in);
  for (std::size_t r = 0; r < out; ++r) {
    for (std::size_t c = 0; c < in; ++c) values.push_back(view.value(r, c));
  }
  return quantise_matrix(to, values, out, in);
}

}  // namespace moetier::kernels
