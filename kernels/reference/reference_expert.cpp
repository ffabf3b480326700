// The fp64 oracle: the formula as it is written, element by element, sharing no code with the
// backends that it judges beyond reading a stored value.
#include <cmath>
#include <vector>

#include "kernels/backend.hpp"
#include "kernels/tensor_values.hpp"
#include "schemas/base/assert.hpp"

namespace moetier::kernels {

void reference_expert(const expert_shape& shape, const expert_tensors& tensors,
                      std::span<const float> x, std::span<double> y) {
  const std::size_t hidden = shape.hidden_size;
  const std::size_t units = shape.intermediate_size;
  MOETIER_ASSERT(x.size() == hidden && y.size() == hidden);
  MOETIER_ASSERT(shape.activation == activation_kind::swiglu);
  std::vector<double> activated(units);
  for (std::size_t i = 0; i < units; ++i) {
    double gate = 0;
    double up = 0;
    for (std::size_t k = 0; k < hidden; ++k) {
      gate += double{x[k]} * double{value_at(tensors.gate, shape.format.stored, i * hidden + k)};
      up += double{x[k]} * double{value_at(tensors.up, shape.format.stored, i * hidden + k)};
    }
    activated[i] = gate / (1.0 + std::exp(-gate)) * up;
  }
  for (std::size_t n = 0; n < hidden; ++n) {
    y[n] = 0;
    for (std::size_t i = 0; i < units; ++i)
      y[n] += activated[i] * double{value_at(tensors.down, shape.format.stored, n * units + i)};
  }
}

}  // namespace moetier::kernels
