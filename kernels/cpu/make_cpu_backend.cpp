#include <algorithm>
#include <array>
#include <new>
#include <string>
#include <system_error>

#include <fmt/format.h>

#include "kernels/backend.hpp"
#include "kernels/cpu/panel_backend.hpp"
#include "kernels/limits.hpp"
#include "kernels/reference/cpu_ref.hpp"
#include "schemas/base/limits.hpp"

namespace moetier::kernels {
namespace {

// What the machine lacks for `name`; empty = eligible.
using lack_fn = std::string (*)(const cpu_features& features);

std::string lacks_avx2(const cpu_features& features) {
  if (features.avx2 && features.fma) return {};
  if (features.avx2) return "the processor has no FMA";
  return features.fma ? "the processor has no AVX2" : "the processor has neither AVX2 nor FMA";
}

std::string lacks_nothing(const cpu_features&) { return {}; }

using make_fn = std::unique_ptr<Backend> (*)(const expert_shape& shape, unsigned threads);

std::unique_ptr<Backend> make_avx2(const expert_shape& shape, unsigned threads) {
  return std::make_unique<panel_backend>(shape, k_panel_kernels_avx2, threads);
}

std::unique_ptr<Backend> make_ref(const expert_shape& shape, unsigned) {
  return std::make_unique<cpu_ref_backend>(shape);
}

struct candidate {
  std::string_view name;
  lack_fn lacks;
  make_fn make;
};

// In order of preference. A wider instruction set is one more row at the top.
constexpr std::array k_candidates = {candidate{"cpu_avx2", lacks_avx2, make_avx2},
                                     candidate{"cpu_ref", lacks_nothing, make_ref}};

std::string allowed_names() {
  std::string names = "auto";
  for (const candidate& c : k_candidates) names += fmt::format(", {}", c.name);
  return names;
}

expected<void> check_shape(const expert_shape& shape) {
  if (shape.hidden_size == 0 || shape.hidden_size > k_hidden_max)
    return fail(reason::invalid_argument, "hidden_size", shape.hidden_size,
                fmt::format("1 to {}", k_hidden_max));
  if (shape.intermediate_size == 0 || shape.intermediate_size > k_intermediate_max)
    return fail(reason::invalid_argument, "intermediate_size", shape.intermediate_size,
                fmt::format("1 to {}", k_intermediate_max));
  if (shape.format.stored != dtype::bf16 && shape.format.stored != dtype::f16 &&
      shape.format.stored != dtype::f32)
    return fail(reason::invalid_dtype, "expert weights", dtype_name(shape.format.stored),
                "bf16, f16, f32");
  if (shape.activation != activation_kind::swiglu)
    return fail(reason::activation_invalid, fmt::format("CPU backends execute swiglu, not {}",
                                                        activation_name(shape.activation)));
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
  const auto chosen = std::find_if(
      k_candidates.begin(), k_candidates.end(),
      [&](const candidate& c) { return any ? c.lacks(features).empty() : c.name == force; });
  if (chosen == k_candidates.end())
    return fail(reason::backend_unresolved,
                fmt::format("{} is not known; allowed: {}", force, allowed_names()));
  if (const std::string lack = chosen->lacks(features); !lack.empty())
    return fail(reason::backend_unresolved,
                fmt::format("{} cannot run here: {}", chosen->name, lack));
  try {
    return chosen->make(shape, options.threads);
  } catch (const std::system_error&) {
    return fail(reason::backend_unresolved,
                fmt::format("{} cannot start {} threads", chosen->name, options.threads));
  } catch (const std::bad_alloc&) {
    return fail(reason::backend_unresolved, fmt::format("no memory for {}", chosen->name));
  }
}

}  // namespace moetier::kernels
