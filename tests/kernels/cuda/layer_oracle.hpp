#pragma once
// The fp64 oracle of an expert layer with the rounding points that a device backend declares: rows
// and intermediate as they are, rounded to bf16, or quantised 1 x 128. Weights are the stored ones,
// dequantised exactly. Thread: any (values).

#include <cstdint>
#include <vector>

#include "kernels/matrix_view.hpp"
#include "kernels/quant/row_quantiser.hpp"
#include "kernels/reference/reference_expert.hpp"
#include "schemas/base/small_floats.hpp"
#include "tests/kernels/expert_case.hpp"

namespace moetier::kernels::cuda {

enum class rounding { none, bf16, fp8 };

inline void round_row(rounding how, std::vector<double>& row) {
  if (how == rounding::none) return;
  std::vector<float> x(row.begin(), row.end());
  if (how == rounding::bf16) {
    for (std::size_t i = 0; i < x.size(); ++i) row[i] = f32_from_bf16(bf16_from_f32(x[i]));
    return;
  }
  std::vector<std::uint8_t> codes(x.size());
  std::vector<float> scales((x.size() + k_row_block - 1) / k_row_block);
  quantise_row(x.data(), x.size(), codes.data(), scales.data());
  for (std::size_t i = 0; i < x.size(); ++i)
    row[i] = double{f32_from_e4m3(codes[i])} * double{scales[i / k_row_block]};
}

// One expert with its matrices as doubles.
class expert_values {
 public:
  expert_values(const expert_shape& shape, const expert& e)
      : shape_(shape),
        expert_(e),
        gate_(is_gated(shape.activation)
                  ? values(e.gate, shape.intermediate_size, shape.hidden_size)
                  : std::vector<double>()),
        up_(values(e.up, shape.intermediate_size, shape.hidden_size)),
        down_(values(e.down, shape.hidden_size, shape.intermediate_size)) {}

  // y of one row of f32 values, unweighted.
  std::vector<double> output(rounding how, std::span<const float> row) const {
    std::vector<double> x(row.begin(), row.end());
    round_row(how, x);
    std::vector<double> mid(shape_.intermediate_size);
    for (std::size_t i = 0; i < mid.size(); ++i) {
      const double g = gate_.empty() ? 0 : product(gate_, i, x) + bias(expert_.gate_bias, i);
      const double u = product(up_, i, x) + bias(expert_.up_bias, i);
      mid[i] = reference_activation(shape_.activation, g, u, expert_.constants);
    }
    round_row(how, mid);
    std::vector<double> y(shape_.hidden_size);
    for (std::size_t n = 0; n < y.size(); ++n)
      y[n] = product(down_, n, mid) + bias(expert_.down_bias, n);
    return y;
  }

 private:
  std::vector<double> values(const std::vector<std::byte>& bytes, std::uint32_t out,
                             std::uint32_t in) const {
    const matrix_view view(shape_.format, bytes, out, in);
    std::vector<double> all(std::size_t{out} * in);
    for (std::uint32_t r = 0; r < out; ++r) {
      for (std::uint32_t c = 0; c < in; ++c)
        all[std::size_t{r} * in + c] = double{view.value(r, c)};
    }
    return all;
  }
  static double product(const std::vector<double>& matrix, std::size_t row,
                        const std::vector<double>& x) {
    const double* const m = matrix.data() + row * x.size();
    double sum = 0;
    for (std::size_t k = 0; k < x.size(); ++k) sum += m[k] * x[k];
    return sum;
  }
  static double bias(const std::vector<float>& b, std::size_t i) {
    return b.empty() ? 0.0 : double{b[i]};
  }

  const expert_shape shape_;
  const expert& expert_;
  std::vector<double> gate_, up_, down_;
};

}  // namespace moetier::kernels::cuda
