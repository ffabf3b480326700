#pragma once
// The one place where a model, its operator's wishes and the workers' slots become a resolution
// request: a running tier and the offline command both ask with what is made here, so equal inputs
// give equal reports and equal resolution ids. Thread: any (pure).

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/resolution/request.hpp"
#include "schemas/model/model_description.hpp"

namespace moetier::coordinator {

// Of the hidden rows that sources send.
inline constexpr dtype k_rows_sent = dtype::f32;

struct tier_wishes {
  resolution::answer_mode answers = resolution::answer_mode::partial;
  std::optional<quant_kind> quantise{};  // format of unquantised experts; none = the files' own
  bool lora = false;
  std::uint32_t tokens_max = 0;
  std::string backend = "AUTO";
  std::string communication = "auto";
  bool allow_degradation = true;
};

// `model` has the operator's routing overrides; `slots` = each worker's per layer, in the workers'
// order. Replicas are on where there are more slots than experts.
resolution_request tier_request(const model_description& model, const tier_wishes& wishes,
                                std::vector<resolution::named_environment> workers,
                                std::vector<std::uint32_t> slots);

}  // namespace moetier::coordinator
