// The durable record: one compare-and-set at a time, carrying all that waits to become durable, and
// what may happen only afterwards.

#include <fmt/core.h>

#include "coordinator/core/state.hpp"
#include "schemas/base/assert.hpp"

namespace moetier::coordinator {
namespace {

// Session ids are reserved in blocks, so that most opens write nothing.
constexpr std::uint32_t k_session_block = 64;
constexpr std::uint32_t k_session_reserve = 16;

constexpr duration_ns k_disk_pause = k_second;  // between two tries of a write that the disk failed

}  // namespace

void core::state::write_next() {
  if (writing) return;
  const bool decide = attempt && attempt->decided && durable.generation.value == 0;
  const bool reserve = durable.next_session - next_session < k_session_reserve &&
                       durable.next_session <= UINT32_MAX - k_session_block;
  if (!epoch_wanted && !decide && !reserve) return;
  record next = durable;
  if (epoch_wanted) {
    epoch_wanted = false;
    next.epoch = epoch_number(durable.epoch.value + 1);
    for (auto& [name, m] : members) {
      if (m.at == member_stage::admitting && m.admission.value == 0) m.admission = next.epoch;
    }
    if (attempt && attempt->epoch.value == 0) attempt->epoch = next.epoch;
  }
  if (decide) {
    next.generation = generation_number(1);
    next.plan = attempt->hash;
    next.placement = attempt->bytes;
    next.checksums = attempt->checksums;
    next.shared_digest = attempt->shared_digest;
    next.checkpoint_digest = attempt->checkpoint_digest;
    next.resolution = attempt->resolution;
    next.shared_experts = attempt->shared_experts;
  }
  if (reserve) next.next_session = durable.next_session + k_session_block;
  MOETIER_ASSERT(next.epoch >= durable.epoch && next.generation >= durable.generation);
  writing = next;
  emit(write_record{durable.epoch, std::move(next)});
}

void core::state::on(const record_written& e, time_ns now) {
  if (!writing || e.epoch != writing->epoch) return;
  if (!e.done && e.trouble.empty()) {  // R11: another coordinator is newer
    return stop(true, "the durable record is another coordinator's");
  }
  if (!e.done) return wait_for_disk(e.trouble, now);
  if (!std::exchange(disk_trouble, {}).empty()) {
    log(log_event::level::info, "record_written_again", fmt::format("epoch {}", e.epoch.value));
  }
  const bool epoch_rose = writing->epoch > durable.epoch;
  const bool decided = writing->generation > durable.generation;
  durable = *std::exchange(writing, std::nullopt);
  if (decided) {
    MOETIER_ASSERT(attempt && attempt->decided);
    plan = std::move(attempt->placement);
    attempt.reset();
    failures.clear();
    log(log_event::level::info, "plan_decided",
        fmt::format("generation {} plan {:016x}", durable.generation.value, durable.plan.value));
    for (auto& [name, m] : members) {
      if (m.at == member_stage::verified) begin_commit(m, now);
      if (m.at == member_stage::joined) ask(m, now);  // replaced while the decision was written
    }
  }
  if (epoch_rose) {
    log(log_event::level::info, "epoch_committed", fmt::format("epoch {}", durable.epoch.value));
    for (auto& [name, m] : members) {
      if (m.at == member_stage::admitting && m.admission.value != 0 &&
          m.admission <= durable.epoch) {
        begin_commit(m, now);
      }
    }
    if (attempt && !attempt->asked && attempt->epoch.value != 0) ask_all(now);
  }
  if (starting) {
    starting = false;
    collecting = plan.has_value();
    collecting_since = now;
    for (const worker_message& w : std::exchange(parked, {})) {
      if (!ended) on(w, now);
    }
  }
  if (!ended) open_parked(now);
}

// What is decided serves on, and what waits to become durable waits: a full disk loses no rows. Who
// has nothing stored yet decided nothing, and is told at once.
void core::state::wait_for_disk(const std::string& trouble, time_ns now) {
  if (durable.epoch.value == 0) return stop(true, trouble, reason::state_unusable);
  if (disk_trouble != trouble) {
    log(log_event::level::error, "record_not_written",
        fmt::format("{}; it is tried again every {} s", trouble, k_disk_pause / k_second));
  }
  disk_trouble = trouble;
  write_again_at = now + k_disk_pause;
  refuse_parked();
}

void core::state::write_again(time_ns now) {
  if (disk_trouble.empty() || now < write_again_at) return;
  write_again_at = now + k_disk_pause;
  emit(write_record{durable.epoch, *writing});
}

// R11: an epoch that this coordinator never made durable can only come from a later one.
void core::state::meet_epoch(epoch_number theirs) {
  if (theirs > durable.epoch) {
    stop(true, fmt::format("epoch {} exists; this coordinator's is {}", theirs.value,
                           durable.epoch.value));
  }
}

}  // namespace moetier::coordinator
