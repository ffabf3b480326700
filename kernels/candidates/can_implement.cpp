#include <algorithm>
#include <numeric>
#include <vector>

#include <fmt/core.h>

#include "kernels/candidates/backend_candidate.hpp"
#include "schemas/resolution/inquiry.hpp"

namespace moetier::kernels {
namespace {

using resolution::deployment;
using resolution::device_kind;
using resolution::environment;
using resolution::problem;
using resolution::reject_reason;
using resolution::scheduler_wish;
using resolution::verdict;

class questions final : resolution::inquiry {
 public:
  questions(const backend_candidate& c, const problem& p, const deployment& d, const environment& e)
      : inquiry(e), c_(c), p_(p), d_(d) {}

  verdict ask() {
    return ask_all(
        *this, {&questions::itself, &questions::device, &questions::weights, &questions::sizes,
                &questions::slots, &questions::topology, &questions::replicas, &questions::routing,
                &questions::capabilities, &questions::workload, &questions::memory,
                &questions::built, &questions::rows});
  }

 private:
  void itself() {
    if (!c_.is_backend)
      refuse(reject_reason::not_an_impl, "it has no implementation to serve with");
    if (c_.deprecated) refuse(reject_reason::backend_deprecated, "it is no longer chosen");
  }

  void weights() {
    if (!holds(c_.quants, p_.quant)) {
      std::string takes;
      for (unsigned q = 0; q < k_quant_kinds; ++q) {
        if (holds(c_.quants, static_cast<quant_kind>(q)))
          takes +=
              fmt::format("{}{}", takes.empty() ? "" : ", ", shown(static_cast<quant_kind>(q)));
      }
      refuse(reject_reason::quant_unsupported, "weights are {}; it takes {}", shown(p_.quant),
             takes);
    }
    if (p_.quant == quant_kind::none && !holds(c_.stored, p_.stored))
      refuse(reject_reason::dtype_unsupported, "weights are {}; it takes {}", dtype_name(p_.stored),
             types_in(c_.stored));
  }

  // Last: the tier chooses this type, nobody who reads the answer can.
  void rows() {
    if (!holds(c_.rows, p_.dtype_act))
      refuse(reject_reason::dtype_unsupported, "hidden rows are {}; it takes {}",
             dtype_name(p_.dtype_act), types_in(c_.rows));
  }

  static std::string_view shown(quant_kind quant) {
    return quant == quant_kind::none ? "unquantised" : quant_name(quant);
  }

  static std::string types_in(std::uint32_t set) {
    std::string text;
    for (const dtype t : {dtype::f32, dtype::f16, dtype::bf16}) {
      if (holds(set, t)) text += fmt::format("{}{}", text.empty() ? "" : ", ", dtype_name(t));
    }
    return text;
  }

  void device() {
    if (c_.device == device_kind::cuda) {
      needs_cuda();
      if (c_.architecture.empty() || refused()) return;
      const std::string* const at = needed("architecture", e_.architecture);
      if (at != nullptr && *at != c_.architecture)
        refuse(reject_reason::sm_unsupported, "it needs {}; the device is {}", c_.architecture,
               *at);
    }
    if (!c_.needs_avx2) return;
    const bool* const avx2 = needed("cpu_avx2", e_.cpu_avx2);
    const bool* const fma = needed("cpu_fma", e_.cpu_fma);
    const bool no_avx2 = avx2 != nullptr && !*avx2;
    const bool no_fma = fma != nullptr && !*fma;
    if (no_avx2 || no_fma)
      refuse(reject_reason::sm_unsupported, "the processor has {}",
             no_avx2 ? (no_fma ? "neither AVX2 nor FMA" : "no AVX2") : "no FMA");
    if (!c_.needs_f16c || p_.quant == quant_kind::none) return;
    const bool* const f16c = needed("cpu_f16c", e_.cpu_f16c);
    if (f16c != nullptr && !*f16c)
      refuse(reject_reason::sm_unsupported, "the processor has no F16C for {} weights",
             quant_name(p_.quant));
  }

  void sizes() {
    const size_multiples m = multiples_of(c_, p_.quant);
    aligned("hidden size", p_.hidden_size, m.hidden);
    aligned("intermediate size", p_.intermediate_size, m.intermediate);
  }
  void aligned(const char* what, std::uint32_t given, std::uint32_t multiple) {
    if (c_.size_max != 0 && given > c_.size_max)
      refuse(reject_reason::capability_missing, "{} {}; at most {}", what, given, c_.size_max);
    if (given % multiple == 0) return;
    const std::uint32_t below = given / multiple * multiple;
    const bool down = below != 0 && given - below <= multiple / 2;
    refuse(reject_reason::shape_unaligned, "{} {} is no multiple of {}; the nearest is {}", what,
           given, multiple, down ? below : below + multiple);
  }

  void slots() {
    if (c_.slots_max != 0 && resolution::most_slots(d_) > c_.slots_max)
      refuse(reject_reason::slot_count, "{} slots on one worker; at most {}",
             resolution::most_slots(d_), c_.slots_max);
    if (!c_.bits.non_uniform_slots && !resolution::slots_uniform(d_))
      refuse(reject_reason::slots_not_divisible, "{}",
             resolution::uneven_remedy(p_.num_experts, d_.workers, d_.num_slots));
  }

  void topology() {
    if (d_.tp_size != 1)
      refuse(reject_reason::topology_unsupported, "tensor parallel size {}; give 1", d_.tp_size);
    const bool fused = c_.scheduler == scheduler_kind::fused_comm;
    if (fused && !(d_.colocated && d_.sources == d_.workers))
      refuse(reject_reason::topology_unsupported,
             "it exchanges inside its kernel: every worker must be a source too");
    if (fused && !resolution::same_place(d_, 3))
      refuse(reject_reason::topology_unsupported,
             "it exchanges inside its kernel: all workers must share one domain");
    const scheduler_wish kind = fused ? scheduler_wish::fused_comm : scheduler_wish::external_comm;
    if (d_.scheduler != scheduler_wish::any && d_.scheduler != kind)
      refuse(reject_reason::scheduler_unsupported, "it runs with {}; {} was asked for",
             word_of(kind), word_of(d_.scheduler));
  }

  void replicas() {
    if (d_.eplb && d_.workers > 1 && !c_.bits.supports_eplb)
      refuse(reject_reason::eplb_unsupported, "it cannot serve replicas");
  }

  void routing() {
    if (!holds(c_.methods, p_.routing))
      refuse(reject_reason::routing_unsupported, "it cannot follow {}",
             routing_method_name(p_.routing));
    if (c_.top_k_max != 0 && p_.top_k > c_.top_k_max)
      refuse(reject_reason::routing_unsupported, "top_k is {}; at most {}", p_.top_k, c_.top_k_max);
    if (p_.weight_at == weight_point::input && p_.top_k != 1)
      refuse(reject_reason::routing_unsupported,
             "the router weight on the input needs one expert a token; top_k is {}", p_.top_k);
  }

  void capabilities() {
    if (d_.dwdp)
      refuse(reject_reason::path_not_enabled, "weights are not passed from worker to worker");
    if (p_.expert_bias && !c_.bits.supports_expert_bias)
      refuse(reject_reason::capability_missing, "it adds no expert bias");
    if (p_.weight_at == weight_point::input && !c_.bits.supports_weight_on_input)
      refuse(reject_reason::capability_missing, "it takes no router weight on the input");
    if (d_.custom_finalise) {
      if (!c_.bits.supports_unfinalised)
        refuse(reject_reason::capability_missing, "it gives no unfinalised rows");
      if (p_.weight_at == weight_point::input)
        refuse(reject_reason::capability_missing,
               "a function of its own cannot finalise with the router weight on the input");
    }
    if (c_.bits.needs_fused_finalise && !d_.fused_finalise)
      refuse(reject_reason::finalise_fusion_required, "it finalises inside its kernel only");
    const auto layout = e_.layouts.find(std::string(c_.kernel));
    if (d_.held_layout.empty()) return;
    if (layout == e_.layouts.end()) {
      unknown(fmt::format("layouts.{}", c_.kernel));
    } else if (!d_.held_layout.starts_with(layout->second + ".")) {
      refuse(reject_reason::weight_layout, "pages lie in {}; it reads those of {}", d_.held_layout,
             layout->second);
    }
  }

  void workload() {
    const std::uint64_t rows = resolution::rows_of_chunk(d_);
    if (c_.rows_max != 0 && rows > c_.rows_max)
      refuse(reject_reason::workload_infeasible,
             "a chunk has {} rows; at most {} (session.max_tokens, --tokens)", rows, c_.rows_max);
  }

  // A lower bound: the canonical bytes of all weights of the fullest worker.
  void memory() {
    if (d_.moe_layers == 0 || !fits_groups(p_.quant, p_.hidden_size) ||
        !fits_groups(p_.quant, p_.intermediate_size))
      return;
    const weight_format format{.quant = p_.quant, .stored = p_.stored};
    const std::uint64_t up = matrix_form_of(format, p_.intermediate_size, p_.hidden_size).bytes;
    const std::uint64_t down = matrix_form_of(format, p_.hidden_size, p_.intermediate_size).bytes;
    const std::uint64_t expert = up * (is_gated(p_.activation) ? 2 : 1) + down;
    const std::uint64_t bill = expert * resolution::most_slots(d_) * d_.moe_layers;
    const bool host = c_.device == device_kind::cpu;
    const std::uint64_t* const has = host ? needed("host_memory_bytes", e_.host_memory_bytes)
                                          : needed("memory_bytes", e_.memory_bytes);
    if (has != nullptr && bill > *has)
      refuse(reject_reason::memory_insufficient,
             "weights of {} layers with {} slots need {} bytes; {} are there", d_.moe_layers,
             resolution::most_slots(d_), bill, *has);
  }

  void built() {
    const std::vector<std::string>* const here = needed("kernels", e_.kernels);
    if (here != nullptr && std::find(here->begin(), here->end(), c_.kernel) == here->end())
      refuse(reject_reason::dep_missing, "the worker's build has no {}", c_.kernel);
  }

  const backend_candidate& c_;
  const problem& p_;
  const deployment& d_;
};

}  // namespace

size_multiples multiples_of(const backend_candidate& c, quant_kind quant) noexcept {
  size_multiples m{c.size_multiple, c.size_multiple};
  // Groups of scales lie along the input axis: of FC1 it is H, of FC2 I. A last block of fp8_block
  // may be shorter.
  if (quant != quant_kind::fp8_block && group_columns(quant) != 0) {
    m.hidden = std::lcm(m.hidden, group_columns(quant));
    m.intermediate = std::lcm(m.intermediate, group_columns(quant));
  }
  if (!c.whole_blocks) return m;
  if (quant == quant_kind::fp8_block) {
    m.hidden = std::lcm(m.hidden, 128u);
    m.intermediate = std::lcm(m.intermediate, 128u);
  }
  if (quant == quant_kind::nvfp4) m.intermediate = std::lcm(m.intermediate, 64u);  // 2I mod 128
  return m;
}

verdict can_implement(const backend_candidate& candidate, const problem& p, const deployment& d,
                      const environment& e) {
  return questions(candidate, p, d, e).ask();
}

}  // namespace moetier::kernels
