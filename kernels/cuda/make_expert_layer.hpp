#pragma once
// From the winner of a resolution to the ExpertLayer of this process: the identity says everything.
// Thread: any; the device is the calling thread's.

#include <memory>
#include <string_view>

#include "kernels/cuda/expert_layer.hpp"
#include "schemas/base/error.hpp"

namespace moetier::kernels::cuda {

// reason::backend_unresolved: this build has no layer of that identity (built_layers.hpp names
// those it has), or its format is not the shape's.
expected<std::unique_ptr<ExpertLayer>> make_expert_layer(std::string_view identity,
                                                         const expert_shape& shape,
                                                         const device_size& device);

}  // namespace moetier::kernels::cuda
