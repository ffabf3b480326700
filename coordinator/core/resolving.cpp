// Resolution in the core: asked when the first plan is made, with everybody's environment; asked
// again when the chosen backend cannot be made or fails its self-test on one of them, so that all
// move together. A committed plan's resolution stands until the plan is replaced.

#include <algorithm>

#include <fmt/core.h>

#include "coordinator/core/state.hpp"
#include "coordinator/resolution/backend_order.hpp"
#include "coordinator/resolution/tier_request.hpp"
#include "schemas/resolution/documents.hpp"

namespace moetier::coordinator {
namespace {

std::string_view text_of(const std::vector<std::uint8_t>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

// A worker says the same at each hello, and a plan asks all of them: read once.
expected<std::shared_ptr<const resolution::environment>> core::state::environment_of(
    const control::hello& m) const {
  const auto place = members.find(m.name);
  if (place != members.end() && place->second.seen &&
      place->second.told.environment == m.environment) {
    return place->second.seen;
  }
  auto read = resolution::read_environment(text_of(m.environment), m.name);
  if (!read) return unexpected_error(std::move(read.error()));
  return std::make_shared<const resolution::environment>(std::move(*read));
}

std::uint32_t core::state::shared_experts_held() const noexcept {
  return options.hold_shared_experts ? options.model.shared.count : 0;
}

expected<resolved_tier> core::state::resolve_for(const eplb::placement& placed) const {
  std::vector<resolution::named_environment> workers;
  std::vector<std::uint32_t> slots;
  for (const auto& span : placed.spans()) {
    slots.push_back(span.slots);
    const member& m = members.at(span.name);
    auto seen = environment_of(m.told);
    if (!seen) return unexpected_error(std::move(seen.error()));
    workers.push_back({m.name, **seen});
  }
  resolution_request r = tier_request(options.model,
                                      {.answers = options.answers,
                                       .quantise = options.quantise,
                                       .lora = options.lora,
                                       .tokens_max = options.tokens_max,
                                       .backend = options.backend_force,
                                       .communication = options.communication,
                                       .allow_degradation = options.allow_degradation},
                                      std::move(workers), std::move(slots));
  r.failures = failures;
  r.epoch = durable.epoch.value;
  return weigh(r);
}

// Why a process cannot do what the tier has resolved, or "".
std::string core::state::unfit_for(const control::hello& m) const {
  auto seen = environment_of(m);
  if (!seen) return seen.error().text;
  if (!plan || !resolved) return {};
  std::vector<resolution::named_environment> both{{m.name, **seen}};
  if (const member* peer = peer_of(m)) {  // the others agree with this one
    auto theirs = environment_of(peer->told);
    if (theirs) both.push_back({peer->name, **theirs});
  }
  if (const auto differ = resolution::compare(both, resolved->what.return_mode); !differ.empty())
    return resolution::sentence_of(differ);
  quant_kind quant = quant_kind::none;
  const auto* candidate = kernels::candidate_of(resolved->winner, quant);
  if (candidate == nullptr) return fmt::format("{} is not known here", resolved->winner);
  const auto answer =
      kernels::can_implement(*candidate, resolved->what, resolved->where, both.front().seen);
  if (answer.eligible()) return {};
  return fmt::format("it cannot run {}: {} {}", resolved->winner,
                     resolution::reject_name(answer.why), answer.detail);
}

// A committed plan keeps the backend and the format it was made for: another wish has no effect.
void core::state::tell_unused_settings() {
  const auto tell = [this](std::string_view setting, std::string_view wish, std::string_view kept) {
    if (wish == kept) return;
    log(log_event::level::warn, "setting_unused",
        fmt::format("{} is {}, and the plan of the durable record keeps {}; a new "
                    "coordinator.state_dir starts with the setting",
                    setting, wish, kept));
  };
  const quant_kind wished = options.quantise.value_or(options.model.format.quant);
  tell("model.quantise", quant_name(wished), quant_name(resolved->what.quant));
  // Compared as the report keeps it; a name that is none was refused before.
  resolution_request asked = tier_request(options.model,
                                          {.answers = options.answers,
                                           .quantise = options.quantise,
                                           .tokens_max = options.tokens_max,
                                           .backend = options.backend_force},
                                          {}, {});
  if (const auto order = backend_order_of(asked)) {
    tell("backend.force", order->literal, resolved->requested);
  }
}

bool core::state::gives_exact_rows() const {
  quant_kind quant = quant_kind::none;
  const auto* candidate = resolved ? kernels::candidate_of(resolved->winner, quant) : nullptr;
  return candidate != nullptr && candidate->bits.row_invariant;
}

// One failed PREPARE moves all: before the decision nothing is in use.
void core::state::try_another(const member& from, const std::string& text) {
  if (plan || !attempt || attempt->decided || !resolved) return;
  log(log_event::level::error, "prepare_failed",
      fmt::format("{} on {}: {}", resolved->winner, from.name, text), {.worker = from.name});
  failures.push_back({resolved->winner, from.name, text});
  drop_attempt();
}

}  // namespace moetier::coordinator
