#pragma once
// How a model family names the tensors of its MoE layers, as data: one small file per family in
// dialects/. A dialect of this form stores one matrix per projection and expert, [out, in],
// row-major. It says what a name means; whether the tensors are all there is the checkpoint's
// check. Thread: any (constants and pure functions).

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "schemas/base/ids.hpp"

namespace moetier::workers {

enum class projection : std::uint8_t { gate = 0, up = 1, down = 2 };
inline constexpr std::size_t k_projections = 3;

// A name is {stem}{layer}.{gate}, or {stem}{layer}.{experts}{expert}.{projection}.
struct dialect {
  std::string_view model_type;
  std::array<std::string_view, 3> stems;  // alternatives: alone, and inside multimodal models
  std::string_view experts;               // "mlp.experts."
  std::array<std::string_view, k_projections> projections;  // by enum projection
  std::string_view router;                                  // "mlp.gate.weight"
};

// The dialect of a model_type, or nullptr.
const dialect* find_dialect(std::string_view model_type) noexcept;

// What a tensor's name means in a dialect.
struct tensor_role {
  enum class kind : std::uint8_t {
    foreign,         // no business of the MoE layers
    router,          // layer
    expert,          // layer, expert, part
    unknown_expert,  // stands among the layer's experts under no name that the dialect knows
  } what = kind::foreign;
  std::uint32_t layer = 0;
  std::uint32_t expert = 0;
  projection part = projection::gate;
};
tensor_role role_of(const dialect& names, std::string_view stem, std::string_view tensor) noexcept;

std::string expert_tensor_name(const dialect& names, std::string_view stem, layer_id layer,
                               std::uint32_t expert, projection part);
std::string router_tensor_name(const dialect& names, std::string_view stem, layer_id layer);

}  // namespace moetier::workers
