#pragma once
// What each CPU backend executes, as data: the candidate table declares it, make_cpu_backend()
// refuses by it, and a test makes every combination that it promises. Sizes are not here: a format
// takes the H and I for which fits_groups() holds, any within the limits otherwise.
// Thread: any (constants).

#include <array>
#include <string_view>

#include "kernels/activation/activation_arguments.hpp"
#include "schemas/model/activation.hpp"
#include "schemas/model/weight_format.hpp"

namespace moetier::kernels {

struct cpu_capabilities {
  std::string_view name;                             // "cpu_avx2"
  std::string_view identity_prefix;                  // "moetier.cpu.avx2."; quant_name() follows
  std::array<bool, k_quant_kinds> formats;           // by quant_kind; none: bf16, f16 and f32
  std::array<bool, k_activation_kinds> activations;  // by activation_kind
  activation_support constants;
  bool row_invariant = false;
  bool supports_expert_bias = false;  // executed, not just tolerated
  bool supports_lora = false;         // for quant none
  bool needs_avx2 = false;            // AVX2 and FMA
  bool needs_f16c = false;            // where weights are quantised

  constexpr bool executes(quant_kind quant) const noexcept {
    return static_cast<std::size_t>(quant) < formats.size() &&
           formats[static_cast<std::size_t>(quant)];
  }
  constexpr bool executes(activation_kind kind) const noexcept {
    return static_cast<std::size_t>(kind) < activations.size() &&
           activations[static_cast<std::size_t>(kind)];
  }
  constexpr bool executes_lora(quant_kind quant) const noexcept {
    return supports_lora && quant == quant_kind::none;
  }
};

inline constexpr std::array k_all_formats = {true, true, true, true, true, true, true};
inline constexpr std::array k_all_activations = {true, true, true, true, true,
                                                 true, true, true, true, true};
inline constexpr activation_support k_constants_per_expert{.alpha = constant_support::per_expert,
                                                           .beta = constant_support::per_expert,
                                                           .limit = constant_support::per_expert};

inline constexpr cpu_capabilities k_cpu_avx2_capabilities{.name = "cpu_avx2",
                                                          .identity_prefix = "moetier.cpu.avx2.",
                                                          .formats = k_all_formats,
                                                          .activations = k_all_activations,
                                                          .constants = k_constants_per_expert,
                                                          .row_invariant = true,
                                                          .supports_expert_bias = true,
                                                          .supports_lora = true,
                                                          .needs_avx2 = true,
                                                          .needs_f16c = true};

inline constexpr cpu_capabilities k_cpu_ref_capabilities{.name = "cpu_ref",
                                                         .identity_prefix = "moetier.cpu.ref.",
                                                         .formats = k_all_formats,
                                                         .activations = k_all_activations,
                                                         .constants = k_constants_per_expert,
                                                         .row_invariant = true,
                                                         .supports_expert_bias = true,
                                                         .supports_lora = true};

// The fp64 oracle as a Backend: for self-tests only, never chosen by itself.
inline constexpr cpu_capabilities k_reference_capabilities{
    .name = "reference",
    .identity_prefix = "moetier.reference.scalar.",
    .formats = k_all_formats,
    .activations = k_all_activations,
    .constants = k_constants_per_expert,
    .row_invariant = true,
    .supports_expert_bias = true};

}  // namespace moetier::kernels
