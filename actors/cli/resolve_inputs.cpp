#include "actors/cli/resolve_inputs.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "coordinator/resolution/routing_choice.hpp"
#include "schemas/file/printable.hpp"

namespace moetier::cli {
namespace {

using coordinator::resolution_request;
using resolution::answer_mode;

expected<void> force(resolution_request& request, const std::string& pair) {
  const std::size_t equals = pair.find('=');
  const std::string part = pair.substr(0, equals);
  const std::string name = equals == pair.npos ? "" : pair.substr(equals + 1);
  if (!name.empty() && part == "backend") {
    request.backend = name;
  } else if (!name.empty() && part == "communication") {
    request.where.communication = name;
  } else {
    return fail(reason::config_invalid, "--force", printable(pair),
                "backend=NAME, communication=NAME");
  }
  return {};
}

}  // namespace

expected<resolution_request> resolve_request(const resolve_options& o,
                                             const resolve_defaults& defaults,
                                             const model_description& model,
                                             std::vector<resolution::environment> environments) {
  resolution_request r;
  const std::string& mode = o.return_mode.empty() ? defaults.return_mode : o.return_mode;
  r.what = problem_of(model, mode == "exact" ? answer_mode::exact : answer_mode::partial);
  r.offline = true;
  r.allow_degradation = !o.no_degradation;
  r.backend = defaults.backend;
  r.where.communication = defaults.carrier;
  for (const std::string& pair : o.forced) {
    if (auto known = force(r, pair); !known) return unexpected_error(known.error());
  }
  r.routing = coordinator::routing_choice_of(model);

  const std::size_t given = environments.size();
  const std::uint32_t workers = o.workers != 0 ? o.workers : static_cast<std::uint32_t>(given);
  if (given != 1 && given != workers)
    return fail(reason::config_invalid, "--environment", fmt::format("given {} times", given),
                fmt::format("once, or once for each of {} workers", workers));
  for (std::uint32_t w = 0; w < workers; ++w)
    r.workers.push_back({fmt::format("worker@{}", w + 1), environments[given == 1 ? 0 : w]});

  r.where.workers = workers;
  r.where.num_slots = o.slots != 0 ? o.slots * workers : model.experts;
  r.where.eplb = o.eplb.value_or(r.where.num_slots > model.experts);
  r.where.moe_layers = static_cast<std::uint32_t>(model.moe_layers.size());
  r.where.tokens_max = o.tokens != 0 ? o.tokens : defaults.tokens;
  return r;
}

}  // namespace moetier::cli
