#pragma once
// From the winner of a resolution to the Backend of this process: the identity says everything. A
// worker never chooses by itself. Thread: any.

#include <memory>
#include <string_view>

#include "kernels/backend.hpp"
#include "schemas/base/error.hpp"

namespace moetier::kernels {

// Builds the backend that `identity` names ("moetier.cpu.avx2.none"). reason::backend_unresolved:
// no candidate has this identity, its format is not the shape's, this build has no such kernels,
// or the machine cannot run them; other reasons as make_cpu_backend().
expected<std::unique_ptr<Backend>> make_backend(std::string_view identity,
                                                const expert_shape& shape,
                                                const cpu_options& options,
                                                const cpu_features& features);

}  // namespace moetier::kernels
