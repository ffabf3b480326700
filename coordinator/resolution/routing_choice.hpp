#pragma once
// The report's part about routing: which kernel routes the layers that choose by logits. Layers
// that choose by token id always run the generic one. Thread: any (pure).

#include "schemas/model/model_description.hpp"
#include "schemas/resolution/report.hpp"

namespace moetier::coordinator {

resolution::routing_choice routing_choice_of(const model_description& model);

}  // namespace moetier::coordinator
