#include "actors/roles/equipment.hpp"

#include <fmt/format.h>

#include "kernels/candidates/make_backend.hpp"
#include "kernels/self_test.hpp"

namespace moetier::roles {

expected<equipment> equipment::make(const resolution::resolution_report& resolved,
                                    workers::checkpoint& files, unsigned threads) {
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
  auto backend = kernels::make_backend(resolved.winner,
                                       {.hidden_size = model.hidden_size,
                                        .intermediate_size = model.intermediate_size,
                                        .format = made.model->format,
                                        .activation = model.activation.kind,
                                        .bias = model.expert_bias},
                                       {.threads = threads}, kernels::detect_cpu_features());
  if (!backend) {
    if (backend.error().why == reason::backend_unresolved) return tl::unexpected(backend.error());
    return fail(reason::backend_unresolved, backend.error().text);
  }
  if (auto passed = kernels::self_test(**backend, model.activation.constants); !passed)
    return tl::unexpected(passed.error());
  made.backend = std::move(*backend);
  return made;
}

}  // namespace moetier::roles
