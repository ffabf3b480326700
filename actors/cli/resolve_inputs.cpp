#include "actors/cli/resolve_inputs.hpp"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "coordinator/resolution/tier_request.hpp"
#include "eplb/placement.hpp"
#include "schemas/file/printable.hpp"

namespace moetier::cli {
namespace {

using coordinator::resolution_request;
using resolution::answer_mode;

// The parts that --force names, each at most once.
struct forced_parts {
  std::string backend;
  std::string communication;
};

expected<forced_parts> forced(const std::vector<std::string>& pairs) {
  forced_parts parts;
  for (const std::string& pair : pairs) {
    const std::size_t equals = pair.find('=');
    const std::string part = pair.substr(0, equals);
    const std::string name = equals == pair.npos ? "" : pair.substr(equals + 1);
    std::string* const into = part == "backend"         ? &parts.backend
                              : part == "communication" ? &parts.communication
                                                        : nullptr;
    if (into == nullptr || name.empty())
      return fail(reason::config_invalid, "--force", printable(pair),
                  "backend=NAME, communication=NAME");
    if (!into->empty())
      return fail(reason::config_invalid, "--force",
                  fmt::format("{0}={1} and {0}={2}", part, printable(*into), printable(name)),
                  "each part once");
    *into = name;
  }
  return parts;
}

}  // namespace

expected<resolution_request> resolve_request(const resolve_options& o,
                                             const resolve_defaults& defaults,
                                             const model_description& model,
                                             std::vector<resolution::environment> environments) {
  const auto parts = forced(o.forced);
  if (!parts) return unexpected_error(parts.error());
  const std::size_t given = environments.size();
  std::uint32_t count = o.workers;
  if (count == 0) count = given == 1 ? defaults.workers : static_cast<std::uint32_t>(given);
  if (given != 1 && given != count)
    return fail(reason::config_invalid, "--environment", fmt::format("given {} times", given),
                fmt::format("once, or once for each of {} workers", count));
  std::vector<resolution::named_environment> workers;
  for (std::uint32_t w = 0; w < count; ++w)
    workers.push_back({fmt::format("worker@{}", w + 1), environments[given == 1 ? 0 : w]});
  // A tier has its workers in the order of their names.
  std::sort(workers.begin(), workers.end(),
            [](const auto& a, const auto& b) { return a.worker < b.worker; });

  const std::uint32_t each = o.slots != 0 ? o.slots : defaults.slots;
  std::vector<std::uint32_t> slots(count, each);
  if (each == 0) slots = eplb::even_partition(model.experts, count);
  const std::string& mode = o.return_mode.empty() ? defaults.return_mode : o.return_mode;
  auto r = coordinator::tier_request(
      model,
      {.answers = mode == "exact" ? answer_mode::exact : answer_mode::partial,
       .quantise = defaults.quantise,
       .lora = defaults.lora,
       .tokens_max = o.tokens != 0 ? o.tokens : defaults.tokens,
       .backend = parts->backend.empty() ? defaults.backend : parts->backend,
       .communication = parts->communication.empty() ? defaults.carrier : parts->communication,
       .allow_degradation = defaults.allow_degradation && !o.no_degradation},
      std::move(workers), std::move(slots));
  r.offline = true;
  if (o.eplb) r.where.eplb = *o.eplb;
  return r;
}

}  // namespace moetier::cli
