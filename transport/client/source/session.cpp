#include "transport/client/source/session.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include <fmt/core.h>

#include "schemas/base/assert.hpp"
#include "transport/client/source/call_error.hpp"
#include "transport/client/source/call_replay.hpp"

namespace moetier::client {
namespace {

// A deadline further away than this is as good as this; keeps sums of times from wrapping.
constexpr duration_ns k_deadline_max = 3600 * k_second;
// While a call waits, how long the carrier sleeps at most and how often newer snapshots are looked
// for: a frozen worker is noticed by nothing else.
constexpr duration_ns k_look_every = 2 * k_millisecond;
constexpr std::uint8_t k_attempt_max = 255;

std::uint32_t budget_us(time_ns deadline, time_ns now) noexcept {
  if (now >= deadline) return 0;
  return static_cast<std::uint32_t>(
      std::min<duration_ns>((deadline - now) / k_microsecond, 0xffffffffu));
}

// All layers' routers at once: no call waits for the coordinator.
expected<std::vector<layer_router_ptr>> fetch_routers(const source_session_options& options,
                                                      const model_description& model) {
  std::vector<layer_router_ptr> routers;
  if (!options.router) return routers;
  for (std::size_t i = 0; i < model.moe_layers.size(); ++i) {
    auto router = options.router(i);
    if (!router) return unexpected_error(std::move(router.error()));
    if ((*router)->columns != model.columns() || (*router)->width != model.hidden_size)
      return fail(reason::internal_error, "the router's matrix does not fit the model");
    routers.push_back(std::move(*router));
  }
  return routers;
}

}  // namespace

expected<std::unique_ptr<source_session>> source_session::open(
    transport::Communication& carrier, const source_session_options& options,
    transport::snapshot_ptr snapshot) {
  MOETIER_ASSERT(snapshot != nullptr);
  const auto plan = plan_opening(options, *snapshot);
  if (!plan) return unexpected_error(plan.error());
  const transport::comm_capabilities bits = carrier.capabilities();
  if (bits.lockstep || !bits.host_memory) {
    return fail(reason::carrier_unavailable, carrier.name(),
                "host-memory calls need an independent carrier");
  }
  auto routers = fetch_routers(options, snapshot->model);
  if (!routers) return unexpected_error(std::move(routers.error()));
  auto half =
      carrier.make_source({.identity = {options.source, options.session, options.incarnation},
                           .shape = plan->exchange});
  if (!half) return unexpected_error(half.error());
  return std::make_unique<session>(options, std::move(snapshot), *plan, std::move(*routers),
                                   std::move(*half));
}

session::session(const source_session_options& options, transport::snapshot_ptr snapshot,
                 const opening& plan, std::vector<layer_router_ptr> routers,
                 std::unique_ptr<transport::SourceHalf> half)
    : options_(options),
      shape_(plan.exchange),
      bounds_(plan.bounds),
      routers_(std::move(routers)),
      half_(std::move(half)),
      journal_(options.waits, options.session, options.on_timeout),
      repeats_(snapshot->model.moe_layers.size()),
      charged_(options.micro_batches) {
  const row_arithmetic& arithmetic = pick_row_arithmetic(kernels::detect_cpu_features());
  tickets_.reserve(options.micro_batches);
  for (std::uint32_t u = 0; u < options.micro_batches; ++u) {
    tickets_.push_back({.call = ticket(plan.ticket, arithmetic), .names = {}, .times = {}});
  }
  adopt(std::move(snapshot));
}

session::~session() { cancel(); }

// --- snapshots ----------------------------------------------------------------------------------

void session::adopt(transport::snapshot_ptr next) {
  MOETIER_ASSERT(next != nullptr);
  for (std::size_t i = 0; i < workers_.attached_count(); ++i) {
    if (workers_.serves(i, *next)) continue;
    const worker_id worker = workers_.attached_worker(i);
    const bool kept = workers_.keeps(i, *next);
    for (session_call& c : tickets_) {
      if (!c.call.outstanding()) continue;
      for (std::size_t s = 0; s < workers_.spans(); ++s) {
        if (workers_.worker_of(s) != worker) continue;
        if (kept) {
          // Only masked: what it owes is waited for no longer, and neither are its banks for chunks
          // still to be sent; what it gave back stays good.
          const bool owes = (c.call.awaited() >> s & 1) != 0;
          if (owes || !c.call.fully_sent()) c.call.fail_late_of(s, workers_);
          continue;
        }
        if (!c.call.uses(s)) continue;
        // Returned rows of a worker that is detached lie in memory that goes with it.
        c.call.fail_lost(worker);
        c.call.abandon(*half_);
      }
    }
  }
  workers_.adopt(*next, *half_);
  if (next != snapshot_) {
    avoided_.forget_late();
    for (session_call& c : tickets_) c.asked_of = 0;
  }
  snapshot_ = std::move(next);
  avoided_.renumber();
  look_for_suspects();
}

void session::adopt_newest_revision() {
  if (!options_.newest) return;
  transport::snapshot_ptr next = options_.newest();
  if (next == nullptr || next->generation != snapshot_->generation) return;
  if (transport::is_newer(*next, *snapshot_)) adopt(std::move(next));
}

// --- suspects -----------------------------------------------------------------------------------

void session::look_for_suspects() {
  if (!options_.suspicion || !avoided_.hear(options_.suspicion(), *snapshot_)) return;
  for (session_call& c : tickets_) c.asked_of = 0;
}

// The clock is asked only where somebody was late.
worker_mask session::avoided_now() const noexcept {
  return workers_.unreachable() | avoided_.at(avoided_.any_late() ? monotonic_now() : 0);
}

// What this call keeps away from, of `all`. Who made a call late is avoided by this source's guess;
// where a call has nowhere else to go than to one of those, the coordinator's suspects are worse,
// and worst are those that no row can reach.
worker_mask session::kept_from(const session_call& c, worker_mask all) const noexcept {
  const worker_mask unreachable = workers_.unreachable();
  const worker_mask suspects = unreachable | avoided_.suspects();
  if (all == suspects && suspects == unreachable) return all;
  for (const worker_mask avoid : {all, suspects, unreachable}) {
    if (avoid != 0 && c.call.can_avoid(*snapshot_, workers_, avoid)) return avoid;
  }
  return all;
}

// Gives up calls that wait for a suspect, where all of their rows have another replica by now:
// collect() tries them again there. A call that would fail goes on waiting, until other workers are
// suspect or serve.
void session::steer(time_ns now) {
  const auto owing = [this](const session_call& c, worker_mask avoid) {
    return c.call.outstanding() && !c.call.failure() ? c.call.awaited() & avoid : 0;
  };
  if (std::none_of(tickets_.begin(), tickets_.end(),
                   [&](const session_call& c) { return owing(c, avoided_.at(now)) != 0; })) {
    return;
  }
  adopt_newest_revision();  // a replica may serve that did not when they were sent
  const worker_mask all = workers_.unreachable() | avoided_.at(now);
  for (session_call& c : tickets_) {
    if (owing(c, all) == 0 || c.asked_of == all) continue;
    if (c.times.replays >= options_.replays_max) continue;
    const worker_mask avoid = kept_from(c, all);
    if (!c.call.can_avoid(*snapshot_, workers_, avoid)) {
      c.asked_of = all;
      continue;
    }
    const worker_mask late = owing(c, avoid);
    if (late == 0) continue;  // a later chunk may wait for one
    c.call.fail_late_of(static_cast<std::size_t>(std::countr_zero(late)), workers_);
    c.steered = true;
  }
}

void session::note_late(worker_id worker, time_ns now) {
  for (std::size_t s = 0; s < snapshot_->workers.size(); ++s) {
    if (snapshot_->workers[s].worker != worker) continue;
    avoided_.note_late(s, now);
    if (options_.report_late) options_.report_late(worker, snapshot_->workers[s].incarnation);
  }
}

// A worker that was lost and is attached anew since may be lost again at once, until the
// coordinator knows what became of it. Its next process is another matter.
void session::avoid_lost(const call_failure& failure, incarnation_id incarnation, time_ns now) {
  for (std::size_t s = 0; s < snapshot_->workers.size(); ++s) {
    const transport::snapshot_worker& entry = snapshot_->workers[s];
    if (entry.worker == failure.worker && entry.incarnation == incarnation) {
      avoided_.note_late(s, now);
    }
  }
}

// --- steps --------------------------------------------------------------------------------------

bool session::any_outstanding() const noexcept {
  return std::any_of(tickets_.begin(), tickets_.end(),
                     [](const session_call& c) { return c.call.outstanding(); });
}

expected<void> session::step_begin(bool replay, duration_ns limit) {
  if (in_step_ && !poison_ && any_outstanding()) {
    return fail(reason::sequence, "step_begin", "a call of the step is not collected");
  }
  if (replay && step_ == 0) return fail(reason::sequence, "a replay", "no step was begun");
  if (replay && attempt_ == k_attempt_max) {
    return fail(reason::limit_exceeded, "the number of attempts of a step", attempt_ + 1,
                k_attempt_max);
  }
  if (!replay) {
    if (auto ok = take_credit(); !ok) return ok;
  }
  cancel();

  transport::snapshot_ptr next = options_.newest ? options_.newest() : nullptr;
  const bool is_new = next != nullptr && transport::is_newer(*next, *snapshot_);
  // One that may be avoided by now need not be waited for.
  const bool steers = avoided_now() != 0;
  if (replay && poison_ && !is_new && !steers && options_.wait_newer) {
    const status code = poison_->code;
    if (code == status::timeout || code == status::stale_generation ||
        code == status::unavailable) {
      const duration_ns most = std::min(options_.call_deadline, k_deadline_max);
      next = options_.wait_newer(*snapshot_, limit == 0 ? most : std::min(limit, most));
    }
  }
  if (next == nullptr || !transport::is_newer(*next, *snapshot_)) next = snapshot_;
  if (next->model.fingerprint != snapshot_->model.fingerprint) {
    return fail(reason::model_changed, options_.session.value);
  }
  adopt(std::move(next));

  attempt_ = replay ? static_cast<std::uint8_t>(attempt_ + 1) : std::uint8_t{0};
  if (!replay) {
    ++step_;
    std::fill(charged_.begin(), charged_.end(), 0u);
  }
  next_chunk_ = 0;
  poison_.reset();
  repeats_.begin_step();
  if (!replay && options_.meter != nullptr) step_began_ = monotonic_now();
  in_step_ = true;
  return {};
}

expected<void> session::take_credit() {
  const std::uint64_t rate = options_.tokens_per_second ? options_.tokens_per_second() : 0;
  const duration_ns wait = credit_.wait_for_step(rate, monotonic_now());
  if (wait == 0) return {};
  error held =
      make_error(reason::no_credit,
                 rate == 0 ? fmt::format("the workers were busy; the next step may begin in {} us",
                                         wait / k_microsecond)
                           : fmt::format("at {} tokens a second the next step may begin in {} us",
                                         rate, wait / k_microsecond));
  held.retry_after_ns = wait;
  return unexpected_error(std::move(held));
}

// A token that goes through several layers is one token of the step.
void session::charge(const layer_call& call) noexcept {
  std::uint32_t& charged = charged_[call.micro_batch];
  if (call.tokens <= charged) return;
  credit_.charge(call.tokens - charged);
  charged = call.tokens;
}

expected<void> session::step_end() {
  if (!in_step_) return fail(reason::sequence, "step_end", "no step was begun");
  if (!poison_ && any_outstanding()) {
    return fail(reason::sequence, "step_end", "a call of the step is not collected");
  }
  cancel();
  in_step_ = false;
  if (poison_) return unexpected_error(*poison_);
  if (options_.meter != nullptr) options_.meter->count_step(monotonic_now() - step_began_);
  return {};
}

void session::cancel() {
  for (session_call& c : tickets_) {
    if (!c.call.outstanding()) continue;
    if (options_.meter != nullptr) {
      options_.meter->count_failure(status::cancelled, c.times.replays);
    }
    c.call.abandon(*half_);
    c.call.end();
  }
}

unexpected_error session::poison(error why) {
  if (!poison_) poison_ = why;
  return unexpected_error(std::move(why));
}

// --- calls --------------------------------------------------------------------------------------

expected<void> session::submit(const layer_call& call) {
  if (!in_step_) return fail(reason::sequence, "submit", "no step was begun");
  if (poison_) return fail(reason::step_poisoned, step_);
  const time_ns start = monotonic_now();
  if (auto ok = check_call(call, bounds_); !ok) return ok;
  if (!call.adapter_ids.empty()) {
    adopt_newest_revision();  // an adapter that was just loaded is there
    if (auto ok = check_adapters_listed(call, snapshot_->adapters); !ok) return ok;
  }
  const int layer_index = moe_index(snapshot_->model, call.layer);
  if (layer_index < 0) return unexpected_error(unknown_layer(call.layer, snapshot_->model));
  const auto layer_at = static_cast<std::size_t>(layer_index);
  session_call& c = tickets_[call.micro_batch];
  if (c.call.outstanding()) {
    return fail(reason::sequence, "submit",
                fmt::format("micro-batch {} has an uncollected call", call.micro_batch));
  }
  if (auto ok = repeats_.check(call, layer_at); !ok) return ok;
  if (auto ok = check_token_ids(call, snapshot_->tables->layers[layer_at].hashed()); !ok) return ok;
  const bool by_gate = !routers_.empty() && call.logits == nullptr && call.ids.empty();
  const layer_router* router = by_gate ? routers_[layer_at].get() : nullptr;
  if (auto ok = c.call.take(call, *snapshot_, layer_at, router); !ok) {
    if (options_.meter != nullptr) options_.meter->count_refusal(ok.error().why);
    return ok;
  }
  const time_ns routed = monotonic_now();

  repeats_.count(call, layer_at);
  charge(call);
  const duration_ns limit = call.deadline == 0 ? options_.call_deadline : call.deadline;
  c.names = {.layer = call.layer,
             .micro_batch = call.micro_batch,
             .repeat_idx = call.repeat_idx,
             .repeat_count = call.repeat_count};
  c.submitted = start;
  c.deadline = start + std::min(limit, k_deadline_max);
  c.first_chunk = next_chunk_;
  c.asked_of = 0;
  c.steered = false;
  c.times = {.route = routed - start};
  next_chunk_ += transport::chunk_count(call.tokens, bounds_.tokens_per_chunk_max);

  adopt_newest_revision();
  look_for_suspects();
  if (auto ok = choose(c); !ok) {
    c.call.end();
    if (options_.meter != nullptr) options_.meter->count_failure(ok.error().code, 0);
    return poison(std::move(ok.error()));
  }
  c.stalled = 0;
  send(c, routed);
  if (!c.call.fully_sent() && !c.call.failure()) {
    note_stall(c, monotonic_now());
    progress();
  }
  c.sent = monotonic_now();
  c.times.pack = c.sent - routed;
  return {};
}

// Called whenever a call was tried to be sent on.
void session::note_stall(session_call& c, time_ns now) noexcept {
  const bool waits = !c.call.fully_sent() && !c.call.failure();
  if (waits && c.stalled == 0) c.stalled = now;
  if (waits || c.stalled == 0) return;
  if (options_.meter != nullptr) options_.meter->count_stall(now - c.stalled);
  c.stalled = 0;
}

expected<void> session::choose(session_call& c) {
  const transport::exchange_key key{.session = options_.session,
                                    .step = step_,
                                    .attempt = attempt_,
                                    .layer = c.names.layer,
                                    .micro_batch = c.names.micro_batch,
                                    .repeat_idx = c.names.repeat_idx,
                                    .repeat_count = c.names.repeat_count,
                                    .epoch = snapshot_->epoch,
                                    .generation = snapshot_->generation,
                                    .plan = snapshot_->plan,
                                    .resolution_id = snapshot_->resolution_id,
                                    .return_mode = static_cast<std::uint8_t>(options_.mode)};
  return c.call.choose(snapshot_, workers_, key, options_.source, c.first_chunk,
                       kept_from(c, avoided_now()));
}

// A worker that it could not be sent to is marked while it is sure which attachment failed.
void session::send(session_call& c, time_ns now) {
  c.call.send(*half_, workers_, budget_us(c.deadline, now));
  const call_failure& failure = c.call.failure();
  if (failure.kind == failure_kind::lost) workers_.mark_broken(failure.worker);
}

// Takes what came, sums what is whole, sends what waited for banks: for all tickets, as they share
// the banks.
void session::progress() {
  std::array<transport::returned, 32> reports;
  for (;;) {
    const std::size_t count = half_->poll(reports);
    for (const auto& report : std::span(reports).first(count)) {
      bool taken = false;
      for (session_call& c : tickets_) {
        if (taken || !c.call.outstanding()) continue;
        taken = c.call.take_return(report, *half_, workers_);
        if (!taken) continue;
        journal_.answered(c, step_, attempt_);
        if (report.result == transport::comm_status::peer_lost) {
          workers_.mark_broken(c.call.last_answer().worker);
        }
      }
      // Of an exchange that was given up meanwhile.
      if (!taken) half_->release(report.ticket);
    }
    if (count < reports.size()) break;
  }
  for (session_call& c : tickets_) {
    if (!c.call.outstanding()) continue;
    // A failed call gives its banks back now, not when it is collected: others wait for them.
    if (c.call.failure()) c.call.abandon(*half_);
    c.call.settle(*half_, workers_);
    if (c.call.fully_sent() || c.call.failure()) continue;
    const time_ns now = monotonic_now();
    send(c, now);
    note_stall(c, now);
    c.call.settle(*half_, workers_);  // a chunk without rows is whole at once
  }
}

// Whether `next` takes an attached worker out of service.
bool session::drops_a_worker(const transport::routing_snapshot& next) const noexcept {
  for (std::size_t i = 0; i < workers_.attached_count(); ++i) {
    if (!workers_.serves(i, next)) return true;
  }
  return false;
}

// The turn of a call that waits: ends what is late, looks for workers that were suspected or taken
// away since (a frozen one is noticed by nothing else), sleeps. Other calls are looked after as
// well: what they wait for may hold the banks that this one needs.
void session::await(time_ns deadline) {
  const time_ns now = monotonic_now();
  if (now - looked_ >= k_look_every || now >= deadline) {
    looked_ = now;
    const transport::snapshot_ptr next = options_.newest ? options_.newest() : nullptr;
    if (next != nullptr && next->generation == snapshot_->generation &&
        transport::is_newer(*next, *snapshot_) && drops_a_worker(*next)) {
      return adopt(next);
    }
    look_for_suspects();
    steer(now);
    for (session_call& c : tickets_) {
      if (c.call.outstanding() && now >= c.deadline) c.call.fail_late(workers_);
    }
  }
  if (now >= deadline) return;
  const duration_ns limit = std::min(deadline - now, k_look_every);
  half_->wait(std::chrono::nanoseconds(options_.spin), std::chrono::nanoseconds(limit));
}

expected<void> session::collect(std::uint16_t micro_batch, const layer_result& result) {
  if (micro_batch >= bounds_.micro_batches) {
    return fail(reason::invalid_argument, "micro_batch", micro_batch,
                fmt::format("0 to {}", bounds_.micro_batches - 1));
  }
  session_call& c = tickets_[micro_batch];
  if (!c.call.outstanding()) {
    return fail(reason::sequence, "collect",
                fmt::format("micro-batch {} has no outstanding call", micro_batch));
  }
  if (auto ok = check_result(result, c.call.tokens(), bounds_); !ok) return ok;

  const time_ns start = monotonic_now();
  looked_ = start;
  c.call.collect_into(result);
  for (;;) {
    const time_ns before = monotonic_now();
    progress();
    const time_ns now = monotonic_now();
    if (c.call.complete() && !c.call.failure()) {
      c.times.sum = now - before;
      c.times.total = now - c.submitted;
      c.times.wait = before - start;
      c.times.air = before > c.sent ? before - c.sent : 0;
      c.times.held = c.call.held();
      return finish(c, result);
    }
    if (!c.call.failure()) await(c.deadline);
    replay_others(c);
    if (!c.call.failure()) continue;
    journal_.given_up(c, step_, attempt_);
    expected<void> chosen;
    if (replay(c, chosen)) {
      c.call.collect_into(result);
      continue;
    }
    const time_ns ended = monotonic_now();
    error why =
        chosen ? error_of(c, ended, options_.session.value + step_) : std::move(chosen.error());
    if (why.code == status::overloaded) credit_.back_off(why.retry_after_ns, ended);
    const call_failure& failure = c.call.failure();
    if (failure.kind == failure_kind::late && ended >= c.deadline) note_late(failure.worker, ended);
    end_ = {.code = why.code,
            .attempt = attempt_,
            .worker = failure.worker,
            .bytes_due = failure.bytes_due,
            .bytes_seen = failure.bytes_seen,
            .age = ended - c.submitted};
    if (options_.meter != nullptr) options_.meter->count_failure(why.code, c.times.replays);
    c.call.abandon(*half_);
    c.call.end();
    return poison(std::move(why));
  }
}

expected<void> session::finish(session_call& c, const layer_result& result) {
  const auto give = [](auto from, auto into) {
    if (!into.empty()) std::copy_n(from.begin(), into.size(), into.begin());
  };
  give(c.call.rows().ids(), result.ids);
  give(c.call.rows().weights(), result.weights);
  give(c.call.rows().bad_rows(), result.bad_rows);
  times_ = c.times;
  if (options_.meter != nullptr) options_.meter->count_call(times_);
  end_ = {.attempt = attempt_, .age = c.times.total};
  c.call.end();
  return {};
}

// --- replay -------------------------------------------------------------------------------------

bool session::may_replay(const session_call& c) const noexcept {
  return failed_by_loss(c.call.failure()) && c.times.replays < options_.replays_max &&
         attempt_ < k_attempt_max;
}

bool session::can_replay(const session_call& c,
                         const transport::routing_snapshot& next) const noexcept {
  return c.steered || may_end_otherwise(c.call.failure(), c.call.snapshot(), next) ||
         can_do_without(c, next);
}

// A connection may break between two that live, and no snapshot tells of it: whether all rows of a
// call that lost a worker have another replica.
bool session::can_do_without(const session_call& c,
                             const transport::routing_snapshot& next) const noexcept {
  const call_failure& failure = c.call.failure();
  if (failure.kind != failure_kind::lost) return false;
  worker_mask avoid = workers_.unreachable();
  for (std::size_t s = 0; s < next.workers.size(); ++s) {
    if (next.workers[s].worker == failure.worker) avoid |= worker_mask{1} << s;
  }
  return c.call.can_avoid(next, workers_, avoid);
}

// The caller waits for another call. One that can be tried again at once is, as its time passes
// too.
void session::replay_others(const session_call& collected) {
  for (session_call& c : tickets_) {
    if (&c == &collected || !c.call.outstanding() || !may_replay(c)) continue;
    if (!can_replay(c, *snapshot_)) continue;
    if (monotonic_now() >= c.deadline || !c.call.can_avoid(*snapshot_, workers_, 0)) continue;
    journal_.given_up(c, step_, attempt_);
    expected<void> chosen;
    static_cast<void>(replay(c, chosen));
  }
}

bool session::replay(session_call& c, expected<void>& chosen) {
  const call_failure failure = c.call.failure();
  if (!may_replay(c)) return false;
  c.call.abandon(*half_);
  transport::snapshot_ptr next = snapshot_;
  for (;;) {
    const time_ns now = monotonic_now();
    if (now >= c.deadline) return false;
    if (can_replay(c, *next)) break;
    if (!options_.wait_newer) return false;
    next = options_.wait_newer(*next, c.deadline - now);
    if (next == nullptr || next->generation != snapshot_->generation) return false;
  }
  const auto* lost =
      failure.kind == failure_kind::lost ? find_worker(c.call.snapshot(), failure.worker) : nullptr;
  const incarnation_id incarnation = lost == nullptr ? incarnation_id() : lost->incarnation;
  if (next != snapshot_) adopt(std::move(next));
  if (lost != nullptr) avoid_lost(failure, incarnation, monotonic_now());
  ++attempt_;
  ++c.times.replays;
  c.steered = false;
  look_for_suspects();
  chosen = choose(c);
  if (!chosen) return false;
  send(c, monotonic_now());
  return true;
}

}  // namespace moetier::client
