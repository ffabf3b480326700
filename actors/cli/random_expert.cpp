#include "actors/cli/random_expert.hpp"

#include <cmath>
#include <random>

#include "kernels/quant/matrix_quantiser.hpp"

namespace moetier::cli {
namespace {

constexpr std::size_t k_period = 65521;

}  // namespace

std::vector<float> random_values(std::size_t count, float scale, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal(0.0F, scale);
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i)
    values[i] = i < k_period ? normal(random) : values[i - k_period];
  return values;
}

expected<random_expert> make_random_expert(const kernels::expert_shape& shape, std::uint64_t seed) {
  const std::uint32_t hidden = shape.hidden_size;
  const std::uint32_t units = shape.intermediate_size;
  const bool gated = is_gated(shape.activation);
  random_expert e;
  const auto fill = [&](std::vector<std::byte>& to, std::uint32_t out,
                        std::uint32_t in) -> expected<void> {
    const float scale = 1.0F / std::sqrt(static_cast<float>(in));
    auto made = kernels::quantise_matrix(
        shape.format, random_values(std::size_t{out} * in, scale, ++seed), out, in);
    if (!made) return tl::unexpected(made.error());
    to = std::move(made->bytes);
    return {};
  };
  if (gated) {
    if (auto made = fill(e.gate, units, hidden); !made) return tl::unexpected(made.error());
  }
  if (auto made = fill(e.up, units, hidden); !made) return tl::unexpected(made.error());
  if (auto made = fill(e.down, hidden, units); !made) return tl::unexpected(made.error());
  if (shape.bias) {
    if (gated) e.gate_bias = random_values(units, 0.1F, ++seed);
    e.up_bias = random_values(units, 0.1F, ++seed);
    e.down_bias = random_values(hidden, 0.1F, ++seed);
  }
  if (shape.activation == activation_kind::swiglu_bias || shape.activation == activation_kind::situ)
    e.constants = {.alpha = 1.702F, .beta = 1.0F, .limit = 0.0F};
  return e;
}

}  // namespace moetier::cli
