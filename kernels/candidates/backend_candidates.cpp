#include <array>

#include <fmt/core.h>

#include "kernels/candidates/backend_candidate.hpp"
#include "kernels/cpu_capabilities.hpp"
#include "kernels/cuda/combine_launch.hpp"
#include "kernels/cuda/straight_launch.hpp"

namespace moetier::kernels {
namespace {

using resolution::device_kind;

constexpr std::string_view k_provider = "moetier.";

constexpr std::uint32_t k_every_quant = (1u << k_quant_kinds) - 1;
constexpr std::uint32_t k_every_activation = (1u << k_activation_kinds) - 1;
constexpr std::uint32_t k_every_method = (1u << k_routing_methods) - 1;
constexpr std::uint32_t k_floats = bit_of(dtype::f32) | bit_of(dtype::f16) | bit_of(dtype::bf16);
constexpr std::uint32_t k_unquantised = bit_of(quant_kind::none);

template <std::size_t Size>
constexpr std::uint32_t set_of(const std::array<bool, Size>& executed) {
  std::uint32_t set = 0;
  for (std::size_t i = 0; i < Size; ++i) set |= executed[i] ? std::uint32_t{1} << i : 0;
  return set;
}

// "cpu.avx2" of "moetier.cpu.avx2.".
constexpr std::string_view kernel_of(std::string_view identity_prefix) {
  identity_prefix.remove_prefix(k_provider.size());
  identity_prefix.remove_suffix(1);
  return identity_prefix;
}

constexpr backend_bits k_sm90_bits{.supports_eplb = true,
                                   .supports_weight_on_input = true,
                                   .supports_unfinalised = true,
                                   .non_uniform_slots = true,
                                   .row_invariant = true};

// What the code behind make_cpu_backend() says of itself.
constexpr backend_candidate cpu(const cpu_capabilities& can) {
  return {.short_name = can.name,
          .kernel = kernel_of(can.identity_prefix),
          .family = backend_family::cpu,
          .needs_avx2 = can.needs_avx2,
          .needs_f16c = can.needs_f16c,
          .quants = set_of(can.formats),
          .stored = k_floats,
          .rows = k_floats,
          .activations = set_of(can.activations),
          .methods = k_every_method,
          .lora_quants = can.supports_lora ? k_unquantised : 0,
          .constants = can.constants,
          .bits = {.supports_lora = can.supports_lora,
                   .supports_eplb = true,
                   .supports_expert_bias = can.supports_expert_bias,
                   .supports_weight_on_input = true,
                   .supports_unfinalised = true,
                   .non_uniform_slots = true,
                   .row_invariant = can.row_invariant}};
}

constexpr backend_candidate cpu_ref() {
  backend_candidate c = cpu(k_cpu_ref_capabilities);
  c.degraded = true;
  return c;
}

constexpr backend_candidate reference() {
  backend_candidate c = cpu(k_reference_capabilities);
  c.family = backend_family::reference;
  return c;
}

constexpr backend_candidate sm90(std::string_view short_name, std::string_view kernel,
                                 std::uint32_t quants) {
  return {.short_name = short_name,
          .kernel = kernel,
          .family = backend_family::cuda,
          .device = device_kind::cuda,
          .architecture = "sm_90",
          .quants = quants,
          .stored = bit_of(dtype::bf16),
          // Rows are narrowed or quantised where they are gathered.
          .rows = bit_of(dtype::f32) | bit_of(dtype::bf16),
          .activations = bit_of(activation_kind::swiglu),
          .methods = k_every_method,
          .constants = {.limit = constant_support::per_expert},
          .size_multiple = 64,
          .whole_blocks = true,
          .top_k_max = cuda::k_combine_positions_max,
          .slots_max = 1024,
          .bits = k_sm90_bits};
}

constexpr backend_candidate sm90_fp8() {
  backend_candidate c = sm90("sm90_fp8", "cuda.sm90_fp8", bit_of(quant_kind::fp8_block));
  c.size_max = cuda::straight_scale_blocks_max(cuda::gemm_format::fp8) *
               cuda::columns_of_block(cuda::gemm_format::fp8);
  return c;
}

constexpr backend_candidate sm90_bf16() {
  backend_candidate c = sm90("sm90_bf16", "cuda.sm90_bf16", k_unquantised);
  c.activations |= bit_of(activation_kind::swiglu_bias);
  c.constants = k_constants_per_expert;
  c.bits.supports_expert_bias = true;
  return c;
}

constexpr backend_candidate cuda_ref() {
  return {.short_name = "cuda_ref",
          .kernel = "cuda.ref",
          .family = backend_family::cuda,
          .degraded = true,
          .device = device_kind::cuda,
          .quants = k_every_quant,
          .stored = k_floats,
          .rows = k_floats,
          .activations = k_every_activation,
          .methods = k_every_method,
          .constants = k_constants_per_expert,
          .bits = {.supports_eplb = true,
                   .supports_expert_bias = true,
                   .supports_weight_on_input = true,
                   .supports_unfinalised = true,
                   .non_uniform_slots = true,
                   .row_invariant = true}};
}

constexpr backend_candidate fused_lockstep() {
  return {
      .short_name = "fused_lockstep",
      .kernel = "cpu.fused_lockstep",
      .family = backend_family::fused,
      .scheduler = scheduler_kind::fused_comm,
      .quants = k_unquantised,
      .stored = k_floats,
      .rows = k_floats,
      .activations = k_every_activation,
      .methods = k_every_method,
      .constants = k_constants_per_expert,
      .bits = {.supports_eplb = true, .supports_expert_bias = true, .exclusive_workspace = true}};
}

// Each family from the most to the least special; a member without a place here does not exist.
constexpr std::array k_candidates = {
    sm90_fp8(), sm90_bf16(),      cuda_ref(),  cpu(k_cpu_avx2_capabilities),
    cpu_ref(),  fused_lockstep(), reference(),
};

}  // namespace

std::string_view family_name(backend_family family) noexcept {
  switch (family) {
    case backend_family::reference: return "REFERENCE";
    case backend_family::cpu: return "CPU";
    case backend_family::cuda: return "CUDA";
    case backend_family::fused: return "FUSED";
  }
  return "";
}

std::string identity_of(const backend_candidate& candidate, quant_kind quant) {
  return fmt::format("moetier.{}.{}", candidate.kernel, quant_name(quant));
}

std::span<const backend_candidate> backend_candidates() noexcept { return k_candidates; }

const backend_candidate* candidate_of(std::string_view identity, quant_kind& quant) noexcept {
  const std::size_t last = identity.rfind('.');
  if (!identity.starts_with(k_provider) || last < k_provider.size()) return nullptr;
  const std::string_view kernel = identity.substr(k_provider.size(), last - k_provider.size());
  if (!quant_of(identity.substr(last + 1), quant)) return nullptr;
  for (const backend_candidate& c : k_candidates) {
    if (c.kernel == kernel) return &c;
  }
  return nullptr;
}

}  // namespace moetier::kernels
