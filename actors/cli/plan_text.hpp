#pragma once
// A plan's gains for people and for tools. Thread: any (pure functions).

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "actors/cli/plan_options.hpp"
#include "eplb/migration/migration.hpp"
#include "eplb/plan_check.hpp"
#include "eplb/planner/model_plan.hpp"

namespace moetier::cli {

struct plan_report {
  std::string loads_told;  // empty: no loads were given
  const eplb::model_plan* plan = nullptr;
  bool repaired = false;  // there was a plan before
  eplb::migration moves;
  eplb::unmet_wishes unmet;
  std::uint64_t expert_bytes = 0;
  bool shares_lost = false;  // in the exported file
};

std::string plan_text(const plan_report& r, const plan_options& o);
nlohmann::ordered_json plan_document(const plan_report& r, const plan_options& o);

}  // namespace moetier::cli
