// Plans in two phases: PREPARE fills empty pages, COMMIT puts exactly what was prepared into
// service, ABORT and RELEASE give pages back. Nothing in service is ever touched.

#include <fmt/core.h>

#include "schemas/base/assert.hpp"
#include "workers/core/state.hpp"

namespace moetier::workers {

using control::refused;

void core::state::obey(const control::prepare& m) {
  if (!is_own(m.incarnation) || !obeys(m.epoch, m.generation)) return;
  if (serving && serving->generation == m.generation && serving->plan == m.plan) {
    say(control::prepared{highest, m.generation, m.plan, options.incarnation, serving->checksums,
                          serving->shared_digest});
    return;
  }
  if (preparing && preparing->generation == m.generation && preparing->plan == m.plan) {
    preparing->epoch = m.epoch;  // a repeat, perhaps of a new coordinator: the newest is answered
    if (preparing->loaded) answer_prepared();
    return;
  }
  if (leaving) return refuse(refused::why::busy, m.generation, "this worker is leaving");
  if (serving && m.generation <= serving->generation) {
    return refuse(refused::why::mismatch, m.generation,
                  fmt::format("generation {} is in service", serving->generation.value));
  }
  if (draining) {  // R3: only empty pages are written
    return refuse(refused::why::busy, m.generation,
                  fmt::format("generation {} is not released yet", draining->generation.value));
  }
  auto placement = eplb::placement::from_canonical(std::as_bytes(std::span(m.placement)));
  if (!placement) return refuse(refused::why::mismatch, m.generation, placement.error().text);
  const eplb::worker_span* own = nullptr;
  for (const auto& span : placement->spans()) {
    if (span.name == options.name) own = &span;
  }
  if (own == nullptr || (options.slots != 0 && options.slots != own->slots)) {
    return refuse(refused::why::mismatch, m.generation,
                  own == nullptr ? "the placement has no slots for this worker"
                                 : fmt::format("the placement gives {} slots; this worker has {}",
                                               own->slots, options.slots));
  }
  const auto* text = reinterpret_cast<const char*>(m.resolution.data());
  auto resolved = resolution::read_report({text, m.resolution.size()}, "the resolution");
  if (!resolved) return refuse(refused::why::mismatch, m.generation, resolved.error().text);
  if (serving && serving->resolution != resolved->resolution_id) {
    return refuse(refused::why::mismatch, m.generation,
                  "another resolution is in service; a worker changes its backend by a restart");
  }
  forget_preparation();
  preparing = plan_in_preparation{
      m.epoch, m.generation, m.plan, own->worker, own->first_slot, resolved->resolution_id,
      false,   {},           0};
  emit(load_plan{m.generation, m.plan, std::move(*placement), preparing->self,
                 std::make_shared<const resolution::resolution_report>(std::move(*resolved)),
                 m.shared_experts});
}

void core::state::on(const plan_loaded& e, time_ns) {
  if (!preparing || preparing->generation != e.generation || preparing->plan != e.plan) return;
  if (preparing->loaded) return;
  preparing->loaded = true;
  preparing->checksums = e.checksums;
  preparing->shared_digest = e.shared_digest;
  answer_prepared();
}

void core::state::on(const plan_load_failed& e, time_ns) {
  if (!preparing || preparing->generation != e.generation || preparing->plan != e.plan) return;
  preparing.reset();
  log(log_event::level::error, "load_failed", e.why.text);
  const bool backend = e.why.why == reason::backend_unresolved;
  refuse(backend ? refused::why::prepare_failed : refused::why::load_failed, e.generation,
         e.why.text);
}

// R3: called only when every byte in its slot has been checked.
void core::state::answer_prepared() {
  MOETIER_ASSERT(preparing && preparing->loaded);
  say(control::prepared{preparing->epoch, preparing->generation, preparing->plan,
                        options.incarnation, preparing->checksums, preparing->shared_digest});
}

void core::state::forget_preparation() {
  if (!preparing) return;
  emit(cancel_load{preparing->generation, preparing->plan});
  preparing.reset();
}

void core::state::obey(const control::abort_plan& m) {
  if (!is_own(m.incarnation) || !obeys(m.epoch, m.generation)) return;
  if (preparing && preparing->generation == m.generation && preparing->plan == m.plan) {
    forget_preparation();
  }
}

// R5: activates exactly what was prepared, or nothing.
void core::state::obey(const control::commit& m) {
  if (!is_own(m.incarnation) || !obeys(m.epoch, m.generation)) return;
  const control::committed done{highest, m.generation, m.plan, options.incarnation};
  if (serving && serving->generation == m.generation && serving->plan == m.plan) return say(done);
  if (!preparing || !preparing->loaded || preparing->generation != m.generation) {
    return refuse(refused::why::unknown_generation, m.generation, "nothing of it is prepared");
  }
  if (preparing->plan != m.plan) {
    return refuse(refused::why::mismatch, m.generation, "another plan is prepared");
  }
  MOETIER_ASSERT(!serving || serving->generation < m.generation);
  MOETIER_ASSERT(!draining);
  emit(serve_generation{m.generation, m.plan, preparing->self, preparing->first_slot,
                        preparing->resolution});
  draining = std::exchange(
      serving, plan_in_service{m.generation, m.plan, preparing->resolution,
                               std::move(preparing->checksums), preparing->shared_digest});
  self = preparing->self;
  preparing.reset();
  load_changed = false;
  say(done);
}

void core::state::obey(const control::release& m) {
  if (!is_own(m.incarnation) || !obeys(m.epoch, m.generation)) return;
  if (!serving || serving->generation < m.generation) {
    return refuse(refused::why::unknown_generation, m.generation, "it is not in service");
  }
  if (!draining || draining->generation >= m.generation) {  // a repeat
    return say(control::released{highest, m.generation, options.incarnation});
  }
  release_asked = highest;
  emit(release_pages{m.generation});
}

void core::state::on(const pages_released& e, time_ns) {
  if (!draining || draining->generation >= e.generation) return;
  draining.reset();
  if (release_asked) {
    say(control::released{*std::exchange(release_asked, std::nullopt), e.generation,
                          options.incarnation});
  }
}

std::vector<control::held_generation> core::state::held() const {
  using control::generation_state;
  std::vector<control::held_generation> all;
  if (serving) all.push_back({serving->generation, serving->plan, generation_state::serving});
  if (draining) all.push_back({draining->generation, draining->plan, generation_state::draining});
  if (preparing) {
    all.push_back({preparing->generation, preparing->plan,
                   preparing->loaded ? generation_state::prepared : generation_state::preparing});
  }
  return all;
}

}  // namespace moetier::workers
