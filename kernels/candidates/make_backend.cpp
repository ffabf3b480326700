#include "kernels/candidates/make_backend.hpp"

#include <fmt/core.h>

#include "kernels/candidates/backend_candidate.hpp"
#include "schemas/base/assert.hpp"
#include "schemas/file/printable.hpp"

namespace moetier::kernels {

expected<std::unique_ptr<Backend>> make_backend(std::string_view identity,
                                                const expert_shape& shape,
                                                const cpu_options& options,
                                                const cpu_features& features) {
  quant_kind quant{};
  const backend_candidate* const candidate = candidate_of(identity, quant);
  if (candidate == nullptr)
    return fail(reason::backend_unresolved, fmt::format("{} is not known", printable(identity)));
  if (quant != shape.format.quant)
    return fail(reason::backend_unresolved,
                fmt::format("{} computes {} weights, not {}", identity, quant_name(quant),
                            quant_name(shape.format.quant)));
  const bool built =
      candidate->family == backend_family::cpu || candidate->family == backend_family::reference;
  if (!built)
    return fail(reason::backend_unresolved, fmt::format("this build has no {}", candidate->kernel));
  auto made = make_cpu_backend(candidate->short_name, shape, options, features);
  MOETIER_ASSERT(!made || (*made)->identity() == identity);
  return made;
}

}  // namespace moetier::kernels
