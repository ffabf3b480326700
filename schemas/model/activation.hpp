#pragma once
// The activation vocabulary: what runs between FC1 and FC2, in f32, after the expert bias. g = gate
// output, l = linear (up) output. Constants come from config keys or the family; check_activation()
// is the one place that judges them. Thread: any (values).

#include <cstdint>
#include <optional>
#include <string_view>

#include "schemas/base/error.hpp"

namespace moetier {

// The clamp of swiglu and swiglu_bias comes first: g = min(g, L), l = clamp(l, -L, L).
enum class activation_kind : std::uint8_t {
  swiglu = 0,       // g·sigmoid(g)·l; limit optional
  geglu = 1,        // gelu(g)·l, erf form
  gelu = 2,         // gelu(l), erf form; no gate
  relu = 3,         // max(l, 0); no gate
  silu = 4,         // l·sigmoid(l); no gate
  relu2 = 5,        // max(l, 0)²; no gate
  swiglu_bias = 6,  // g·sigmoid(alpha·g)·(l + beta); alpha, beta required, limit optional
  situ = 7,         // cap(g, alpha)·sigmoid(g)·cap(l, beta), cap(x, c) = c·tanh(x/c); both > 0
  swiglu_step = 8,  // min(silu(g), L)·clamp(l, -L, L); limit optional
  geglu_tanh = 9,   // gelu(g)·l, tanh form
};
inline constexpr std::uint8_t k_activation_kinds = 10;

constexpr bool is_gated(activation_kind kind) noexcept {
  return kind != activation_kind::gelu && kind != activation_kind::relu &&
         kind != activation_kind::silu && kind != activation_kind::relu2;
}

std::string_view activation_name(activation_kind kind) noexcept;  // "swiglu_bias"; "" out of range

// Plain values as kernels read them. limit 0 = no clamp; alpha and beta 0 where the kind has none.
struct activation_constants {
  float alpha = 0.0F;
  float beta = 0.0F;
  float limit = 0.0F;

  bool operator==(const activation_constants&) const = default;
};

struct activation_rule {
  activation_kind kind = activation_kind::swiglu;
  activation_constants constants;

  bool operator==(const activation_rule&) const = default;
};

// From what was given (absent = nullopt) to constants. reason::activation_invalid: a limit that is
// not above 0, a constant that the kind has not, alpha or beta missing where required, situ caps
// not above 0, anything not finite.
struct given_constants {
  std::optional<float> alpha;
  std::optional<float> beta;
  std::optional<float> limit;
};
expected<activation_rule> check_activation(activation_kind kind, const given_constants& given);

}  // namespace moetier
