#pragma once
// The device layers that this build has, as data: what an environment tells of them and what a
// worker must know before it makes one. Thread: any (constants).

#include <array>
#include <string_view>

#include "kernels/backend.hpp"

namespace moetier::kernels::cuda {

struct built_layer {
  std::string_view kernel;  // as in the candidate table: "cuda.ref"
  std::string_view layout;  // how its layout ids begin
  operand_form operands = operand_form::f32;
};

// Ascending by kernel.
inline constexpr std::array k_built_layers{
    built_layer{"cuda.ref", "canonical", operand_form::f32},
    built_layer{"cuda.sm90_bf16", "sm90tiles", operand_form::bf16},
    built_layer{"cuda.sm90_fp8", "sm90tiles", operand_form::fp8},
};

// Requires: the identity of a layer that was made.
constexpr operand_form operands_of(std::string_view identity) noexcept {
  for (const built_layer& layer : k_built_layers) {
    if (identity.find(layer.kernel) != identity.npos) return layer.operands;
  }
  return operand_form::f32;
}

}  // namespace moetier::kernels::cuda
