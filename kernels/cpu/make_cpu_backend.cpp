#include <algorithm>
#include <array>
#include <new>
#include <string>
#include <system_error>
#include <utility>

#include <fmt/core.h>

#include "kernels/backend.hpp"
#include "kernels/cpu/panel_backend.hpp"
#include "kernels/cpu_capabilities.hpp"
#include "kernels/limits.hpp"
#include "kernels/reference/cpu_ref.hpp"
#include "schemas/base/limits.hpp"

namespace moetier::kernels {
namespace {

std::string lacks_avx2(const cpu_features& features) {
  if (features.avx2 && features.fma) return {};
  if (features.avx2) return "the processor has no FMA";
  return features.fma ? "the processor has no AVX2" : "the processor has neither AVX2 nor FMA";
}

using make_fn = std::unique_ptr<Backend> (*)(const expert_shape& shape, unsigned threads);

std::unique_ptr<Backend> make_avx2(const expert_shape& shape, unsigned threads) {
  return std::make_unique<panel_backend>(shape, k_panel_kernels_avx2, threads);
}

std::unique_ptr<Backend> make_ref(const expert_shape& shape, unsigned) {
  return std::make_unique<cpu_ref_backend>(shape);
}

std::unique_ptr<Backend> make_reference(const expert_shape& shape, unsigned) {
  return make_reference_backend(shape);
}

struct candidate {
  const cpu_capabilities& can;
  make_fn make;
  bool by_itself;  // may be chosen without being named
};

// In order of preference. A wider instruction set is one more row at the top.
constexpr std::array k_candidates = {
    candidate{k_cpu_avx2_capabilities, make_avx2, true},
    candidate{k_cpu_ref_capabilities, make_ref, true},
    candidate{k_reference_capabilities, make_reference, false},
};

// What `c` lacks for this shape here; empty = eligible.
std::string lack_of(const candidate& c, const expert_shape& shape, const cpu_features& features) {
  if (c.can.needs_avx2) {
    if (std::string lack = lacks_avx2(features); !lack.empty()) return lack;
  }
  if (c.can.needs_f16c && shape.format.quant != quant_kind::none && !features.f16c)
    return fmt::format("the processor has no F16C for {} weights", quant_name(shape.format.quant));
  if (!c.can.executes(shape.format.quant))
    return fmt::format("it has no {} weights", quant_name(shape.format.quant));
  if (!c.can.executes(shape.activation))
    return fmt::format("it does not execute {}", activation_name(shape.activation));
  return {};
}

std::string allowed_names() {
  std::string names = "auto";
  for (const candidate& c : k_candidates) names += fmt::format(", {}", c.can.name);
  return names;
}

expected<void> check_shape(const expert_shape& shape) {
  if (shape.hidden_size == 0 || shape.hidden_size > k_hidden_max)
    return fail(reason::invalid_argument, "hidden_size", shape.hidden_size,
                fmt::format("1 to {}", k_hidden_max));
  if (shape.intermediate_size == 0 || shape.intermediate_size > k_intermediate_max)
    return fail(reason::invalid_argument, "intermediate_size", shape.intermediate_size,
                fmt::format("1 to {}", k_intermediate_max));
  const weight_format& format = shape.format;
  if (static_cast<std::size_t>(format.quant) >= k_quant_kinds)
    return fail(reason::backend_unresolved,
                fmt::format("weight format {} is not known", static_cast<unsigned>(format.quant)));
  if (format.quant == quant_kind::none && format.stored != dtype::bf16 &&
      format.stored != dtype::f16 && format.stored != dtype::f32)
    return fail(reason::invalid_dtype, "expert weights", dtype_name(format.stored),
                "bf16, f16, f32");
  for (const auto& [name, size] : {std::pair{"hidden_size", shape.hidden_size},
                                   std::pair{"intermediate_size", shape.intermediate_size}}) {
    if (!fits_groups(format.quant, size))
      return fail(reason::invalid_argument, fmt::format("{} of {}", name, quant_name(format.quant)),
                  size, fmt::format("multiples of {}", group_columns(format.quant)));
  }
  if (static_cast<std::size_t>(shape.activation) >= k_activation_kinds)
    return fail(reason::activation_invalid,
                fmt::format("kind {} is not known", static_cast<unsigned>(shape.activation)));
  return {};
}

expected<void> check_options(const cpu_options& options, const cpu_features& features) {
  if (options.threads == 0 || options.threads > k_compute_threads_max)
    return fail(reason::invalid_argument, "compute threads", options.threads,
                fmt::format("1 to {}", k_compute_threads_max));
  if (options.force_isa.empty()) return {};
  if (options.force_isa != "avx2")
    return fail(reason::backend_unresolved,
                fmt::format("instruction set {} is not known; allowed: avx2", options.force_isa));
  if (const std::string lack = lacks_avx2(features); !lack.empty())
    return fail(reason::backend_unresolved,
                fmt::format("instruction set avx2 cannot run here: {}", lack));
  return {};
}

}  // namespace

expected<std::unique_ptr<Backend>> make_cpu_backend(std::string_view force,
                                                    const expert_shape& shape,
                                                    const cpu_options& options,
                                                    const cpu_features& features) {
  if (auto checked = check_shape(shape); !checked) return unexpected_error(checked.error());
  if (auto checked = check_options(options, features); !checked)
    return unexpected_error(checked.error());

  const bool any = force.empty() || force == "auto";
  const auto chosen =
      std::find_if(k_candidates.begin(), k_candidates.end(), [&](const candidate& c) {
        return any ? c.by_itself && lack_of(c, shape, features).empty() : c.can.name == force;
      });
  if (chosen == k_candidates.end())
    return fail(reason::backend_unresolved,
                fmt::format("{} is not known; allowed: {}", force, allowed_names()));
  if (const std::string lack = lack_of(*chosen, shape, features); !lack.empty())
    return fail(reason::backend_unresolved,
                fmt::format("{} cannot run here: {}", chosen->can.name, lack));
  try {
    return chosen->make(shape, options.threads);
  } catch (const std::system_error&) {
    return fail(reason::backend_unresolved,
                fmt::format("{} cannot start {} threads", chosen->can.name, options.threads));
  } catch (const std::bad_alloc&) {
    return fail(reason::backend_unresolved, fmt::format("no memory for {}", chosen->can.name));
  }
}

}  // namespace moetier::kernels
