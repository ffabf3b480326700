#pragma once
// What one Backend declares before it exists: what it computes, on what, and which shapes it takes.
// Resolution asks can_implement() of every candidate for every worker; nothing here builds, loads
// or probes anything. A candidate stays in the table while its kernels are not built: it then says
// so. Thread: any (immutable values, pure functions).

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "kernels/activation/activation_arguments.hpp"
#include "schemas/resolution/deployment.hpp"
#include "schemas/resolution/environment.hpp"
#include "schemas/resolution/problem.hpp"
#include "schemas/resolution/verdict.hpp"

namespace moetier::kernels {

enum class backend_family : std::uint8_t { reference, cpu, cuda, fused };
std::string_view family_name(backend_family family) noexcept;  // "CPU"

enum class scheduler_kind : std::uint8_t { external_comm, fused_comm };

// All default to no. Every Backend takes zero rows and skips id -1.
struct backend_bits {
  bool supports_lora = false;
  bool supports_dwdp = false;
  bool supports_eplb = false;
  bool supports_expert_bias = false;  // adds it, does not just tolerate it
  bool supports_weight_on_input = false;
  bool supports_unfinalised = false;  // gives rows and an index map
  bool non_uniform_slots = false;
  bool all_gather_only = false;
  bool supports_padding_trim = false;
  bool exclusive_workspace = false;   // one chunk in flight
  bool row_invariant = false;         // a row's bits depend on no other row
  bool needs_fused_finalise = false;  // cannot leave the weighted sum to another kernel
};

// Sets of enumerators as bits.
template <class Enum>
constexpr std::uint32_t bit_of(Enum value) noexcept {
  return std::uint32_t{1} << static_cast<unsigned>(value);
}
template <class Enum>
constexpr bool holds(std::uint32_t set, Enum value) noexcept {
  return (set & bit_of(value)) != 0;
}

struct backend_candidate {
  std::string_view short_name;  // "cpu_avx2": what backend.force takes
  std::string_view kernel;      // "cpu.avx2": technique and kernel of the identity
  backend_family family = backend_family::cpu;
  bool degraded = false;   // the readable last resort of its family
  bool is_backend = true;  // false: a name without an implementation
  bool deprecated = false;
  scheduler_kind scheduler = scheduler_kind::external_comm;
  resolution::device_kind device = resolution::device_kind::cpu;
  std::string_view architecture{};  // "sm_90"; empty = any of the device's
  bool needs_avx2 = false;          // and FMA
  bool needs_f16c = false;          // where weights are quantised
  std::uint32_t quants = 0;         // bits of quant_kind
  std::uint32_t stored = 0;         // bits of dtype: unquantised weights
  std::uint32_t rows = 0;           // bits of dtype: hidden rows
  std::uint32_t activations = 0;    // bits of activation_kind
  std::uint32_t methods = 0;        // bits of routing_method it can follow
  std::uint32_t lora_quants = 0;    // bits of quant_kind
  activation_support constants{};
  std::uint32_t size_multiple = 1;  // of H and I, besides the format's own groups
  bool whole_blocks = false;        // fp8_block H, I and nvfp4 2I in whole blocks of 128
  std::uint32_t size_max = 0;       // of H and I; 0 = no bound
  std::uint32_t top_k_max = 0;      // positions of a row; 0 = no bound
  std::uint32_t slots_max = 0;      // of one worker per layer; 0 = no bound
  std::uint32_t rows_max = 0;       // receive rows of a chunk; 0 = no bound
  backend_bits bits{};
};

// "moetier.cpu.avx2.none".
std::string identity_of(const backend_candidate& candidate, quant_kind quant);

// All candidates, each family in order of preference.
std::span<const backend_candidate> backend_candidates() noexcept;
// The candidate and the format that an identity names, from the winner of a report; nullptr if it
// is none of ours.
const backend_candidate* candidate_of(std::string_view identity, quant_kind& quant) noexcept;

// What H and I must be multiples of.
struct size_multiples {
  std::uint32_t hidden = 1;
  std::uint32_t intermediate = 1;
};
size_multiples multiples_of(const backend_candidate& candidate, quant_kind quant) noexcept;

// Whether the candidate can compute this problem in this deployment on one worker. Asks about
// itself, device, format and type of the weights, sizes, slots, topology, scheduler, replicas,
// routing, capabilities, workload, memory, whether it is built, and last the type of the rows, in
// this order; the first reason stands. LoRA,
// activations, exact answers and carriers are asked by the resolver. Requires: checked values.
resolution::verdict can_implement(const backend_candidate& candidate, const resolution::problem& p,
                                  const resolution::deployment& d,
                                  const resolution::environment& e);

}  // namespace moetier::kernels
