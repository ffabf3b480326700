#pragma once
// An expert in plain double precision, from canonical bytes by code of its own: the formulas as
// they are written down, nothing shared with the product. Slow and clear. Thread: any.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numeric>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "schemas/model/model_description.hpp"
#include "workers/store/expert_source.hpp"

namespace moetier::workers {

inline double naive_e4m3(std::uint8_t code) {
  const int exponent = (code >> 3) & 15;
  const int mantissa = code & 7;
  const double value =
      exponent == 0 ? std::ldexp(mantissa, -9) : std::ldexp(8 + mantissa, exponent - 10);
  return (code & 0x80) != 0 ? -value : value;
}

template <class T>
T naive_at(std::span<const std::byte> bytes, std::size_t index) {
  T value{};
  std::memcpy(&value, bytes.data() + index * sizeof(T), sizeof(T));
  return value;
}

inline double naive_float(std::span<const std::byte> bytes, std::size_t index, dtype element) {
  if (element == dtype::f32) return naive_at<float>(bytes, index);
  const auto bits = naive_at<std::uint16_t>(bytes, index);
  return element == dtype::bf16 ? f32_from_bf16(bits) : f32_from_f16(bits);
}

// A canonical matrix [out, in] as doubles.
inline std::vector<double> naive_matrix(const weight_format& format,
                                        std::span<const std::byte> bytes, std::uint32_t out,
                                        std::uint32_t in) {
  constexpr std::array<double, 8> k_e2m1{0, 0.5, 1, 1.5, 2, 3, 4, 6};
  const matrix_form form = matrix_form_of(format, out, in);
  const auto scales = bytes.subspan(form.scales_offset);
  std::vector<double> values(std::size_t{out} * in);
  for (std::size_t n = 0; n < values.size(); ++n) {
    const std::size_t row = n / in;
    const std::size_t column = n % in;
    // Of the formats that have so many bytes.
    const auto byte = [&] { return naive_at<std::uint8_t>(bytes, n); };
    const auto nibble = static_cast<std::uint8_t>(
        (naive_at<std::uint8_t>(bytes, n / 2) >> (n % 2 == 0 ? 0 : 4)) & 15);
    const double e2m1 = (nibble & 8) != 0 ? -k_e2m1[nibble & 7] : k_e2m1[nibble & 7];
    const auto e8m0 = [&] {
      return std::ldexp(1.0, naive_at<std::uint8_t>(scales, row * (in / 32) + column / 32) - 127);
    };
    switch (format.quant) {
      case quant_kind::none: values[n] = naive_float(bytes, n, format.stored); break;
      case quant_kind::fp8_tensor:
        values[n] = naive_e4m3(byte()) * naive_at<float>(scales, row);
        break;
      case quant_kind::fp8_block:
        values[n] = naive_e4m3(byte()) *
                    naive_at<float>(scales, row / 128 * ((in + 127) / 128) + column / 128);
        break;
      case quant_kind::mxfp8: values[n] = naive_e4m3(byte()) * e8m0(); break;
      case quant_kind::mxfp4: values[n] = e2m1 * e8m0(); break;
      case quant_kind::nvfp4:
        values[n] = e2m1 *
                    naive_e4m3(naive_at<std::uint8_t>(scales, row * (in / 16) + column / 16)) *
                    naive_at<float>(bytes.subspan(form.second_offset), 0);
        break;
      case quant_kind::int4_g128:
        values[n] =
            (nibble - 8) * naive_float(scales, row * (in / 128) + column / 128, dtype::bf16);
        break;
    }
  }
  return values;
}

// y = matrix x, matrix [rows, x.size()] row-major.
inline std::vector<double> naive_product(std::span<const double> matrix,
                                         std::span<const double> x) {
  std::vector<double> y(matrix.size() / x.size());
  for (std::size_t r = 0; r < y.size(); ++r)
    y[r] = std::inner_product(x.begin(), x.end(), matrix.begin() + static_cast<long>(r * x.size()),
                              0.0);
  return y;
}

inline double naive_sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

inline double naive_activation(const activation_kind kind, const activation_constants& c, double g,
                               double l) {
  const double limit = c.limit == 0.0F ? INFINITY : c.limit;
  const auto before = [&] {
    g = std::min(g, limit);
    l = std::clamp(l, -limit, limit);
  };
  switch (kind) {
    case activation_kind::swiglu: before(); return g * naive_sigmoid(g) * l;
    case activation_kind::swiglu_bias:
      before();
      return g * naive_sigmoid(c.alpha * g) * (l + c.beta);
    case activation_kind::swiglu_step:
      return std::min(g * naive_sigmoid(g), limit) * std::clamp(l, -limit, limit);
    case activation_kind::geglu_tanh:
      return 0.5 * g * (1 + std::tanh(std::sqrt(2 / M_PI) * (g + 0.044715 * g * g * g))) * l;
    case activation_kind::relu2: return std::max(l, 0.0) * std::max(l, 0.0);
    default: ADD_FAILURE() << "no family has this activation"; return 0;
  }
}

// One expert as loaded.
struct naive_expert {
  std::vector<std::byte> gate, up, down;
  std::vector<float> gate_bias, up_bias, down_bias;
  std::vector<double> w1, w3, w2;
  activation_kind kind{};
  activation_constants constants;

  static expected<naive_expert> load(expert_source& source, const model_description& model,
                                     layer_id layer, std::uint32_t expert) {
    const std::uint32_t h = model.hidden_size;
    const std::uint32_t i = model.intermediate_size;
    naive_expert e;
    e.kind = model.activation.kind;
    const std::size_t widening = matrix_form_of(model.format, i, h).bytes;
    // Every byte must be written.
    e.gate.assign(is_gated(e.kind) ? widening : 0, std::byte{0xcd});
    e.up.assign(widening, std::byte{0xcd});
    e.down.assign(matrix_form_of(model.format, h, i).bytes, std::byte{0xcd});
    if (model.expert_bias) {
      e.gate_bias.assign(i, -1e9F);
      e.up_bias.assign(i, -1e9F);
      e.down_bias.assign(h, -1e9F);
    }
    auto done = source.load(layer, expert_id(static_cast<std::uint16_t>(expert)),
                            {e.gate, e.up, e.down, e.gate_bias, e.up_bias, e.down_bias});
    if (!done) return unexpected_error(std::move(done.error()));
    if (is_gated(e.kind)) e.w1 = naive_matrix(model.format, e.gate, i, h);
    e.w3 = naive_matrix(model.format, e.up, i, h);
    e.w2 = naive_matrix(model.format, e.down, h, i);
    e.constants = constants_of(model, static_cast<std::size_t>(moe_index(model, layer)),
                               expert >= model.experts);
    return e;
  }

  std::vector<double> operator()(std::span<const double> x) const {
    std::vector<double> linear = naive_product(w3, x);
    const std::vector<double> gates = w1.empty() ? linear : naive_product(w1, x);
    for (std::size_t n = 0; n < linear.size(); ++n) {
      const double g = gates[n] + (gate_bias.empty() ? 0.0 : gate_bias[n]);
      const double l = linear[n] + (up_bias.empty() ? 0.0 : up_bias[n]);
      linear[n] = naive_activation(kind, constants, g, l);
    }
    std::vector<double> y = naive_product(w2, linear);
    for (std::size_t n = 0; n < y.size() && !down_bias.empty(); ++n) y[n] += down_bias[n];
    return y;
  }
};

}  // namespace moetier::workers
