#include "kernels/cuda/make_expert_layer.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "kernels/candidates/backend_candidate.hpp"
#include "kernels/cuda/built_layers.hpp"
#include "kernels/cuda/cuda_ref_layer.hpp"
#include "kernels/cuda/sm90_layer.hpp"
#include "schemas/file/printable.hpp"

namespace moetier::kernels::cuda {

expected<std::unique_ptr<ExpertLayer>> make_expert_layer(std::string_view identity,
                                                         const expert_shape& shape,
                                                         const device_size& device) {
  quant_kind quant{};
  const backend_candidate* const candidate = candidate_of(identity, quant);
  const bool built =
      candidate != nullptr &&
      std::any_of(k_built_layers.begin(), k_built_layers.end(),
                  [&](const built_layer& layer) { return layer.kernel == candidate->kernel; });
  if (!built)
    return fail(reason::backend_unresolved,
                fmt::format("this build has no {}", printable(identity)));
  if (!holds(candidate->quants, quant))
    return fail(reason::backend_unresolved,
                fmt::format("{} computes no {} weights", candidate->kernel, quant_name(quant)));
  if (quant != shape.format.quant)
    return fail(reason::backend_unresolved,
                fmt::format("{} computes {} weights, not {}", identity, quant_name(quant),
                            quant_name(shape.format.quant)));
  if (candidate->degraded) return std::make_unique<cuda_ref_layer>(shape, device);
  auto layer = make_sm90_layer(shape, device);
  if (layer == nullptr)
    return fail(reason::backend_unresolved,
                fmt::format("{} does not fit this device's shared memory", identity));
  return layer;
}

}  // namespace moetier::kernels::cuda
