// The fp64 oracle: the formula as it is written, element by element, sharing no code with the
// backends that it judges beyond reading a stored value.
#include "kernels/reference/reference_expert.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/matrix_view.hpp"
#include "schemas/base/assert.hpp"

namespace moetier::kernels {
namespace {

double sigmoid(double x) {
  return x >= 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x));
}

double gelu(double x) { return 0.5 * x * std::erfc(-x / std::sqrt(2.0)); }

double gelu_tanh(double x) {
  const double root = std::sqrt(2 / std::acos(-1.0));
  return x * sigmoid(2 * root * (x + 0.044715 * x * x * x));
}

double clamp(double x, double limit) { return std::fmin(std::fmax(x, -limit), limit); }

double cap(double x, double c) { return c * std::tanh(x / c); }

// row `out` of the matrix times x, plus the bias.
template <class T>
double product(const matrix_view& matrix, std::size_t out, std::span<const T> x,
               std::span<const float> bias) {
  double sum = 0;
  for (std::size_t k = 0; k < x.size(); ++k) sum += double{x[k]} * double{matrix.value(out, k)};
  return bias.empty() ? sum : sum + double{bias[out]};
}

}  // namespace

double reference_activation(activation_kind kind, double g, double l,
                            const activation_constants& constants) {
  const double alpha = constants.alpha;
  const double beta = constants.beta;
  const double limit =
      constants.limit > 0 ? constants.limit : std::numeric_limits<double>::infinity();
  if (std::isnan(g) || std::isnan(l)) return std::numeric_limits<double>::quiet_NaN();
  switch (kind) {
    case activation_kind::swiglu: {
      const double limited = std::fmin(g, limit);
      return limited * sigmoid(limited) * clamp(l, limit);
    }
    case activation_kind::geglu: return gelu(g) * l;
    case activation_kind::gelu: return gelu(l);
    case activation_kind::relu: return std::fmax(l, 0.0);
    case activation_kind::silu: return l * sigmoid(l);
    case activation_kind::relu2: return std::fmax(l, 0.0) * std::fmax(l, 0.0);
    case activation_kind::swiglu_bias: {
      const double limited = std::fmin(g, limit);
      return limited * sigmoid(alpha * limited) * (clamp(l, limit) + beta);
    }
    case activation_kind::situ: return cap(g, alpha) * sigmoid(g) * cap(l, beta);
    case activation_kind::swiglu_step: return std::fmin(g * sigmoid(g), limit) * clamp(l, limit);
    case activation_kind::geglu_tanh: return gelu_tanh(g) * l;
  }
  return 0;
}

void reference_row(const expert_shape& shape, const expert_tensors& tensors,
                   std::span<const float> x, std::span<double> activated, std::span<double> y) {
  const std::uint32_t hidden = shape.hidden_size;
  const std::uint32_t units = shape.intermediate_size;
  MOETIER_ASSERT(x.size() == hidden && y.size() == hidden && activated.size() == units);
  const matrix_view up(shape.format, tensors.up, units, hidden);
  const matrix_view gate =
      is_gated(shape.activation) ? matrix_view(shape.format, tensors.gate, units, hidden) : up;
  const matrix_view down(shape.format, tensors.down, hidden, units);
  for (std::size_t i = 0; i < units; ++i) {
    const double g = is_gated(shape.activation) ? product(gate, i, x, tensors.gate_bias) : 0.0;
    activated[i] = reference_activation(shape.activation, g, product(up, i, x, tensors.up_bias),
                                        tensors.constants);
  }
  for (std::size_t n = 0; n < hidden; ++n)
    y[n] = product(down, n, std::span<const double>(activated), tensors.down_bias);
}

void reference_expert(const expert_shape& shape, const expert_tensors& tensors,
                      std::span<const float> x, std::span<double> y) {
  std::vector<double> activated(shape.intermediate_size);
  reference_row(shape, tensors, x, activated, y);
}

}  // namespace moetier::kernels
