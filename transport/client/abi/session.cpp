#include "transport/client/abi/session.hpp"

#include <algorithm>
#include <cstring>
#include <random>
#include <utility>

#include <fmt/core.h>

#include "schemas/base/assert.hpp"
#include "schemas/base/limits.hpp"
#include "transport/client/abi/session_wish.hpp"

namespace moetier::abi {
namespace {

constexpr duration_ns k_open_default = 5 * k_second;
constexpr duration_ns k_close_limit = k_second;
constexpr duration_ns k_limit_max = 3600 * k_second;

// A ticket is its number and its micro-batch in the low bits; numbers start at 1.
constexpr unsigned k_micro_batch_bits = 3;
static_assert(k_micro_batches_max <= 1u << k_micro_batch_bits);

std::uint16_t micro_batch_of(moetier_ticket ticket) noexcept {
  return static_cast<std::uint16_t>(ticket & ((1u << k_micro_batch_bits) - 1));
}

bool on_device(const shared_place& place) noexcept { return place.device >= 0; }

// A stream orders work on a device; a call without any tensor has none to order.
expected<void> check_stream(const shared_place& place, const void* stream) {
  if (stream == nullptr || place.device != k_on_host) return {};
  return fail(reason::not_enabled, "a stream for tensors in host memory");
}

std::optional<deadline_class> urgency_of(std::uint32_t wish) noexcept {
  if (wish == MOETIER_CLASS_DEFAULT) return std::nullopt;
  return static_cast<deadline_class>(wish - MOETIER_CLASS_DECODE);
}
static_assert(MOETIER_CLASS_BATCH - MOETIER_CLASS_DECODE == int(deadline_class::batch));

incarnation_id random_incarnation() {
  std::random_device random;
  const std::uint64_t high = random();
  return incarnation_id(high << 32 | random());
}

}  // namespace

// --- life ---------------------------------------------------------------------------------------

expected<std::unique_ptr<session>> session::open(service& owner,
                                                 const moetier_session_options& options) {
  if (auto ok = check_wish(options); !ok) return unexpected_error(ok.error());
  // The workers' row records hold the model's experts per token, no more.
  const auto model = owner.info();
  if (!model) return unexpected_error(model.error());
  if (options.top_k > model->top_k) {
    return fail(reason::limit_exceeded, "top_k", options.top_k, model->top_k);
  }
  const client::session_wish wish{.tenant = owner.tenant(),
                                  .incarnation = random_incarnation(),
                                  .tokens_max = options.max_tokens,
                                  .micro_batches = std::max(1u, options.micro_batches),
                                  .top_k = options.top_k,
                                  .return_mode = static_cast<std::uint8_t>(options.return_mode),
                                  .gate_on_tier = options.gate == MOETIER_SIDE_TIER,
                                  .shared_experts = options.shared_experts == MOETIER_SIDE_TIER,
                                  .flags_bad_rows = options.bad_rows == MOETIER_BAD_ROWS_FLAG,
                                  .model_fingerprint = 0,
                                  .urgency = urgency_of(options.deadline_class)};
  const duration_ns limit = options.open_timeout_ns == 0
                                ? k_open_default
                                : std::min(options.open_timeout_ns, k_limit_max);
  const time_ns until = monotonic_now() + limit;
  auto granted = owner.link().open_session(wish, limit);
  if (!granted) return unexpected_error(granted.error());

  // From here on the lease is closed again whatever fails: the session's end does it.
  std::unique_ptr<session> made(new session(owner, options, std::move(*granted)));
  const client::session_granted& lease = made->granted_;
  auto carrier = owner.carrier(lease.snapshot->carrier);
  if (!carrier) return unexpected_error(carrier.error());
  client::tier_link& link = owner.link();
  client::source_session_options source{
      .session = lease.session,
      .source = lease.source,
      .incarnation = wish.incarnation,
      .tokens_max = lease.tokens_max,
      .micro_batches = lease.micro_batches,
      .top_k = lease.top_k,
      .mode = static_cast<kernels::return_mode>(options.return_mode),
      .rows_per_chunk_max = options.max_rows_per_chunk,
      .shared_experts = wish.shared_experts,
      .flags_bad_rows = wish.flags_bad_rows,
      .wait_newer = [&link, id = lease.session](
                        const transport::routing_snapshot& seen,
                        duration_ns wait) { return link.wait_newer(id, seen, wait); },
      .newest = [&link] { return link.newest(); },
      .suspicion = [&link] { return link.suspicion(); },
      .report_late = [&link, id = lease.session](
                         worker_id worker,
                         incarnation_id incarnation) { link.report_late(id, worker, incarnation); },
      .waits = &owner.waits(),
      .on_timeout = [&owner](const transport::wait_record&) { owner.on_timeout(); }};
  if (wish.gate_on_tier) {
    source.router = [&owner, layers = lease.snapshot->model.moe_layers](std::size_t index) {
      return owner.router(layers[index]);
    };
  }
  if (lease.tokens_per_second) {
    source.tokens_per_second = [rate = lease.tokens_per_second] {
      return rate->load(std::memory_order_relaxed);
    };
  }
  if (options.step_deadline_ns == 0) made->options_.step_deadline_ns = lease.step_deadline;
  if (lease.call_deadline != 0) source.call_deadline = lease.call_deadline;
  if (options.call_deadline_ns != 0) source.call_deadline = options.call_deadline_ns;
  source.call_deadline = std::min(source.call_deadline, k_limit_max);
  made->options_.call_deadline_ns = source.call_deadline;
  auto opened = client::source_session::open(**carrier, source, lease.snapshot);
  if (!opened) return unexpected_error(opened.error());
  made->source_ = std::move(*opened);
  const time_ns now = monotonic_now();
  if (auto ok = link.attach(lease.session, made->source_->shape(), made->source_->address(),
                            until > now ? until - now : 1);
      !ok) {
    return unexpected_error(ok.error());
  }
  return made;
}

session::session(service& owner, const moetier_session_options& options,
                 client::session_granted granted)
    : owner_(owner), options_(options), granted_(std::move(granted)) {
  hidden_size_ = granted_.snapshot->model.hidden_size;
  places_.resize(granted_.micro_batches);
  words_.resize(granted_.micro_batches);
  const tensor_sizes sizes{.tokens_max = granted_.tokens_max,
                           .hidden_size = hidden_size_,
                           .columns = granted_.snapshot->model.columns(),
                           .top_k = granted_.top_k};
  tensors_ = std::make_unique<call_tensors>(sizes);
  staging_ = std::make_unique<device_staging>(owner.driver_library(), sizes);
  generation_told_ = granted_.snapshot->generation.value;
  owner_.enter(*this);
}

session::~session() {
  owner_.leave(*this);
  // A session whose opening failed still holds its lease; there is nobody to tell if this fails.
  if (holds_lease_) static_cast<void>(owner_.link().close_session(id(), k_close_limit));
}

expected<void> session::close() {
  events_.close();  // first: who waits there still reads this session
  source_->cancel();
  holds_lease_ = false;
  if (lost_.load(std::memory_order_relaxed)) return {};
  return owner_.link().close_session(id(), k_close_limit);
}

expected<void> session::check_lease() const {
  if (!lost_.load(std::memory_order_relaxed)) return {};
  return fail(reason::lease_lapsed, granted_.session.value);
}

expected<void> session::look_at_lease() {
  if (owner_.link().session_lost(id())) lost_.store(true, std::memory_order_relaxed);
  return check_lease();
}

void session::hear(client::link_event event) noexcept {
  moetier_event told{};
  if (const transport::snapshot_ptr newest = owner_.link().newest()) {
    told.epoch = newest->epoch.value;
    told.generation = newest->generation.value;
    told.workers_live = live_workers(*newest);
  }
  switch (event) {
    case client::link_event::coordinator_lost: told.kind = MOETIER_EVENT_COORDINATOR_LOST; break;
    case client::link_event::coordinator_back: told.kind = MOETIER_EVENT_COORDINATOR_BACK; break;
    case client::link_event::suspect: told.kind = MOETIER_EVENT_SUSPECT; break;
    case client::link_event::session_lost:
      lost_.store(true, std::memory_order_relaxed);
      told.kind = MOETIER_EVENT_SESSION_LOST;
      break;
    case client::link_event::snapshot:
      told.kind = told.generation > generation_told_ ? MOETIER_EVENT_GENERATION_READY
                                                     : MOETIER_EVENT_MEMBERSHIP;
      generation_told_ = std::max(generation_told_, told.generation);
      break;
  }
  events_.push(told);
}

// --- steps --------------------------------------------------------------------------------------

expected<void> session::step_begin(const moetier_step_options& options) {
  if (auto ok = check_wish(options); !ok) return ok;
  if (auto ok = look_at_lease(); !ok) return ok;
  const std::uint64_t before = source_->snapshot().generation.value;
  const duration_ns wish =
      options.deadline_ns == 0 ? options_.step_deadline_ns : options.deadline_ns;
  const duration_ns limit = std::min(wish, k_limit_max);
  if (auto ok = source_->step_begin(options.replay != 0, limit); !ok) return ok;
  if (auto ok = look_at_lease(); !ok) return ok;  // it may have ended a wait
  for (place& p : places_) p.outstanding = false;
  step_limit_ = limit;
  step_until_ = wish == 0 ? 0 : monotonic_now() + step_limit_;
  step_failure_.reset();
  device_failure_.reset();
  if (options.replay == 0) {
    step_ = {};
    attempts_ = 0;
    ++steps_;
  }
  ++attempts_;
  const transport::routing_snapshot& now = source_->snapshot();
  if (now.generation.value != before) {
    events_.push({.size = 0,
                  .version = 0,
                  .kind = MOETIER_EVENT_GENERATION_MOVED,
                  .workers_live = live_workers(now),
                  .epoch = now.epoch.value,
                  .generation = now.generation.value});
  }
  return {};
}

expected<void> session::step_end(moetier_step_report& report) {
  auto ended = source_->step_end();
  const bool did_end = ended || ended.error().why != reason::sequence;
  if (did_end) {
    for (place& p : places_) p.outstanding = false;
  }
  report.status = static_cast<std::uint32_t>(step_failure_.value_or(status::ok));
  report.attempts = attempts_;
  report.step = source_->step();
  report.generation = source_->snapshot().generation.value;
  report.calls = step_.calls;
  report.replays = step_.replays;
  report.tokens = step_.tokens;
  if (!did_end) return ended;
  const auto failed = std::exchange(device_failure_, std::nullopt);
  if (ended && failed) return unexpected_error(*failed);
  return ended;
}

// --- calls --------------------------------------------------------------------------------------

expected<duration_ns> session::limit_of(std::uint64_t wish) const {
  const duration_ns limit = wish == 0 ? options_.call_deadline_ns : std::min(wish, k_limit_max);
  if (step_until_ == 0) return limit;
  const time_ns now = monotonic_now();
  if (now >= step_until_) {
    return fail(reason::deadline_passed, fmt::format("step {}", source_->step()),
                step_limit_ / k_millisecond);
  }
  return std::min(limit, step_until_ - now);
}

expected<moetier_ticket> session::submit(const moetier_call& call, void* stream) {
  if (auto ok = check_lease(); !ok) return unexpected_error(ok.error());
  if (auto ok = check_wish(call); !ok) return unexpected_error(ok.error());
  if (device_failure_) return fail(reason::step_poisoned, source_->step());
  auto views = tensors_->view(call);
  if (!views) return unexpected_error(views.error());
  const tensor_view hidden = views->hidden;
  const shared_place memory = views->place;
  if (auto ok = check_stream(memory, stream); !ok) return unexpected_error(ok.error());
  if (on_device(memory) && hidden.rows > 0) {
    if (auto ok = staging_->fetch(*views, stream); !ok) return unexpected_error(ok.error());
  }
  auto read = tensors_->read(call, *views);
  if (!read) return unexpected_error(read.error());
  const auto limit = limit_of(call.deadline_ns);
  if (!limit) return unexpected_error(limit.error());
  read->deadline = *limit;
  if (auto ok = source_->submit(*read); !ok) {
    // What is refused before it is sent fails no step, but a call without replica does.
    if (ok.error().code == status::unavailable) {
      ++step_.failures;
      ++all_.failures;
      if (!step_failure_) step_failure_ = ok.error().code;
    }
    return unexpected_error(std::move(ok.error()));
  }
  place& p = places_[call.micro_batch];
  p = {.ticket = ++last_ticket_ << k_micro_batch_bits | call.micro_batch,
       .outstanding = true,
       .tokens = hidden.rows,
       .layer = read->layer,
       .repeat_idx = call.repeat_idx,
       .hidden = hidden,
       .memory = memory};
  words_[call.micro_batch].status = MOETIER_PENDING;
  return p.ticket;
}

expected<void> session::known_ticket(moetier_ticket ticket) const {
  const std::uint16_t u = micro_batch_of(ticket);
  if (ticket != 0 && u < places_.size() && places_[u].ticket == ticket) return {};
  return fail(reason::invalid_argument, "ticket", ticket, "one of this session's newest tickets");
}

expected<void> session::collect(moetier_ticket ticket, const moetier_result& result, void* stream) {
  if (auto ok = known_ticket(ticket); !ok) return ok;
  const std::uint16_t u = micro_batch_of(ticket);
  place& p = places_[u];
  if (!p.outstanding) {
    return fail(reason::sequence, "collect", fmt::format("ticket {} has ended", ticket));
  }
  if (auto ok = check_wish(result); !ok) return ok;
  const auto views = tensors_->view(result, p.hidden, p.memory);
  if (!views) return unexpected_error(views.error());
  if (auto ok = check_stream(views->place, stream); !ok) return ok;
  result_views places = *views;
  const bool staged = on_device(views->place) && p.tokens > 0;
  std::optional<error> lost;  // what the driver failed at
  if (staged) {
    auto on_host = staging_->places_for(*views, stream);
    if (on_host) {
      places = *on_host;
    } else if (on_host.error().code == status::device) {
      lost = std::move(on_host.error());
    } else {
      return unexpected_error(std::move(on_host.error()));
    }
  }
  auto ended = lost ? collect_into_nowhere(u) : source_->collect(u, call_tensors::into(places));
  // A refused result leaves the ticket as it was.
  if (!ended && (ended.error().code == status::invalid)) return ended;
  if (ended && staged) {
    if (lost) {
      ended = unexpected_error(std::move(*lost));
    } else {
      ended = staging_->store(places, *views, stream);
    }
    if (!ended && !device_failure_) device_failure_ = ended.error();
  }
  p.outstanding = false;
  const std::uint64_t replays = ended ? source_->last_times().replays : 0;
  for (counts* c : {&step_, &all_}) {
    ++c->calls;
    c->replays += replays;
    c->tokens += p.tokens;
    if (!ended) ++c->failures;
  }
  granted_.use->calls.store(all_.calls, std::memory_order_relaxed);
  granted_.use->token_layers.store(all_.tokens, std::memory_order_relaxed);
  granted_.use->generation.store(source_->snapshot().generation.value, std::memory_order_relaxed);
  if (!ended && !step_failure_) step_failure_ = ended.error().code;
  write_word(u, ended ? status::ok : ended.error().code);
  return ended;
}

expected<void> session::forward(const moetier_call& call, const moetier_result& result,
                                void* stream) {
  const auto ticket = submit(call, stream);
  if (!ticket) return unexpected_error(ticket.error());
  auto ended = collect(*ticket, result, stream);
  if (!ended && places_[call.micro_batch].outstanding) {
    // The result was refused and nobody has the ticket to ask again.
    static_cast<void>(collect_into_nowhere(call.micro_batch));
    places_[call.micro_batch].outstanding = false;
  }
  return ended;
}

// Ends a call whose rows have no place to go to.
expected<void> session::collect_into_nowhere(std::uint16_t micro_batch) {
  const std::size_t pitch = hidden_size_ * sizeof(float);
  std::vector<std::byte> nowhere(places_[micro_batch].tokens * pitch);
  return source_->collect(micro_batch, {.output = nowhere.data(), .pitch = pitch});
}

void session::write_word(std::uint16_t micro_batch, status code) {
  const client::call_end& end = source_->last_end();
  const place& p = places_[micro_batch];
  moetier_status_word word{};
  word.attempt = end.attempt;
  word.layer = p.layer.value;
  word.step = source_->step();
  word.generation = source_->snapshot().generation.value;
  word.repeat_idx = p.repeat_idx;
  word.late_worker = end.worker.value;
  word.bytes_due = end.bytes_due;
  word.bytes_seen = end.bytes_seen;
  word.age_ns = end.age;
  word.status = MOETIER_PENDING;
  words_[micro_batch] = word;
  // Another thread that sees the end sees all of it.
  std::atomic_ref<std::uint32_t>(words_[micro_batch].status)
      .store(static_cast<std::uint32_t>(code), std::memory_order_release);
}

expected<void> session::ack_generation(std::uint64_t generation) const {
  const std::uint64_t current = source_->snapshot().generation.value;
  if (generation == current) return {};
  return fail(reason::invalid_argument, "generation", generation, current);
}

moetier_stats_snapshot session::stats() const {
  const transport::routing_snapshot& now = source_->snapshot();
  const client::call_times& times = source_->last_times();
  moetier_stats_snapshot stats{};
  stats.steps = steps_;
  stats.calls = all_.calls;
  stats.tokens = all_.tokens;
  stats.failures = all_.failures;
  stats.replays = all_.replays;
  stats.epoch = now.epoch.value;
  stats.generation = now.generation.value;
  stats.workers = static_cast<std::uint32_t>(now.workers.size());
  stats.workers_live = live_workers(now);
  stats.route_ns = times.route;
  stats.pack_ns = times.pack;
  stats.wait_ns = times.wait;
  stats.sum_ns = times.sum;
  stats.total_ns = times.total;
  stats.late_returns = source_->carrier_counts().late_returns;
  stats.max_tokens = granted_.tokens_max;
  stats.micro_batches = granted_.micro_batches;
  stats.air_ns = times.air;
  stats.held_ns = times.held;
  return stats;
}

}  // namespace moetier::abi
