#include "actors/roles/equipment.hpp"

#include <fmt/core.h>

#include "kernels/candidates/backend_candidate.hpp"
#include "kernels/candidates/make_backend.hpp"
#include "kernels/self_test.hpp"

namespace moetier::roles {
namespace {

bool computes_on_device(std::string_view identity) {
  quant_kind quant{};
  const kernels::backend_candidate* const candidate = kernels::candidate_of(identity, quant);
  return candidate != nullptr && candidate->device == resolution::device_kind::cuda;
}

expected<std::unique_ptr<kernels::Backend>> make_on_host(std::string_view identity,
                                                         const kernels::expert_shape& shape,
                                                         const activation_constants& constants,
                                                         unsigned threads) {
  auto backend =
      kernels::make_backend(identity, shape, {.threads = threads}, kernels::detect_cpu_features());
  if (!backend) {
    if (backend.error().why == reason::backend_unresolved) return tl::unexpected(backend.error());
    return fail(reason::backend_unresolved, backend.error().text);
  }
  if (auto passed = kernels::self_test(**backend, constants); !passed)
    return tl::unexpected(passed.error());
  return backend;
}

}  // namespace

expected<equipment> equipment::make(const resolution::resolution_report& resolved,
                                    workers::checkpoint& files, const equipment_wish& wish) {
  const model_description& model = files.model();
  const quant_kind quant = resolved.what.quant;
  equipment made;
  made.source = &files;
  made.model = &model;
  if (quant != model.format.quant) {
    auto quantising = workers::quantising_source::create(files, model, quant);
    if (!quantising) return tl::unexpected(quantising.error());
    made.quantising = std::move(*quantising);
    made.source = made.quantising.get();
    made.model = &made.quantising->model();
  }
  const kernels::expert_shape shape{.hidden_size = model.hidden_size,
                                    .intermediate_size = model.intermediate_size,
                                    .format = made.model->format,
                                    .activation = model.activation.kind,
                                    .bias = model.expert_bias};
  if (!computes_on_device(resolved.winner)) {
    auto backend = make_on_host(resolved.winner, shape, model.activation.constants, wish.threads);
    if (!backend) return tl::unexpected(backend.error());
    made.backend = std::move(*backend);
    return made;
  }
  if (wish.device == nullptr)
    return fail(reason::backend_unresolved,
                fmt::format("{} needs a CUDA device; this worker has none", resolved.winner));
  auto on_device =
      make_on_device(*wish.device, resolved.winner, shape, *made.model, wish.on_device);
  if (!on_device) return tl::unexpected(on_device.error());
  made.backend = std::move(on_device->backend);
  made.pages = std::move(on_device->pages);
  made.pages_max_bytes = on_device->pages_max_bytes;
  made.bill = on_device->bill;
  return made;
}

}  // namespace moetier::roles
