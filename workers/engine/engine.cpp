#include "workers/engine/engine.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <bitset>
#include <chrono>
#include <optional>
#include <thread>
#include <type_traits>

#include <pthread.h>

#include "schemas/base/assert.hpp"
#include "schemas/base/limits.hpp"
#include "workers/engine/mailbox.hpp"
#include "workers/engine/waiting_calls.hpp"
#include "workers/layer/moe_layer.hpp"

namespace moetier::workers {
namespace {

constexpr std::size_t k_arrivals_max = 64;                     // taken from the carrier at once
constexpr duration_ns k_sleep_max = 100 * k_millisecond;       // so that tick rises when idle
constexpr duration_ns k_counters_every = 100 * k_millisecond;  // refresh of what others read

std::chrono::nanoseconds nanoseconds(duration_ns d) {
  return std::chrono::nanoseconds(static_cast<std::int64_t>(d));
}

transport::source_shape shape_of(const control::source_attachment& s) {
  return {.rows_max = s.rows_max,
          .hidden_stride = s.hidden_stride,
          .top_k = s.top_k,
          .return_stride = s.return_stride,
          .return_rows_max = s.return_rows_max,
          .banks = s.banks};
}

std::uint32_t sources_in(std::span<const transport::arrival> taken) noexcept {
  std::bitset<k_sources_max> seen;
  for (const transport::arrival& a : taken) seen.set(a.source.value % k_sources_max);
  return static_cast<std::uint32_t>(seen.count());
}

}  // namespace

class engine::loop {
 public:
  loop(const engine_options& options, kernels::Backend& backend, transport::WorkerHalf& half,
       sinks out)
      : options_(options),
        half_(half),
        out_(std::move(out)),
        layer_({.layers = options.layers,
                .rows_max = options.rows_max,
                .top_k_max = options.top_k_max,
                .sources_max = options.sources_max},
               backend, half),
        waiting_(options.sources_max),
        attached_(options.sources_max) {}

  void start() {
    MOETIER_ASSERT(!thread_.joinable());
    thread_ = std::thread([this] { run(); });
  }

  void stop() {
    stopping_.store(true, std::memory_order_release);
    half_.wake();
    if (thread_.joinable()) thread_.join();
  }

  const transport::wait_ring& waits() const noexcept { return waits_; }

  void post(engine_command command) {
    mail_.post(std::move(command));
    half_.wake();
  }

  engine_progress progress(bool with_counts) {
    engine_progress p;
    p.tick = tick_.load(std::memory_order_relaxed);
    p.tickets_ended = ended_.load(std::memory_order_relaxed);
    p.calls_total = p.tickets_ended;
    p.rows_total = rows_.load(std::memory_order_relaxed);
    const time_ns since = busy_since_.load(std::memory_order_relaxed);
    p.oldest_batch_ns = since == 0 ? 0 : monotonic_now() - since;
    if (with_counts) add_counts(p);
    return p;
  }

  engine_reading reading() const { return meter_.read(); }

  std::uint64_t tick() const noexcept { return tick_.load(std::memory_order_relaxed); }

  queue_figures queue() const noexcept { return waiting_.figures(); }

  transport::carrier_counters carrier() const {
    const std::lock_guard lock(counters_mutex_);
    return counters_;
  }

 private:
  void run() {
    pthread_setname_np(pthread_self(), "moetier-engine");
    std::array<transport::arrival, k_arrivals_max> arrivals;
    time_ns counters_due = 0;
    time_ns looked_at = 0;  // 0: nothing was computed since
    time_ns turn_began = monotonic_now();
    while (!stopping_.load(std::memory_order_acquire)) {
      tick_.fetch_add(1, std::memory_order_relaxed);
      if (mail_.pending()) obey();
      const std::size_t n = half_.poll(arrivals);
      const time_ns polled = monotonic_now();
      time_ns now = polled;
      if (n > 0) last_arrival_ = now;
      const duration_ns unseen = looked_at == 0 ? 0 : now - looked_at;
      for (std::size_t i = 0; i < n; ++i) admit(arrivals[i], now, unseen);
      hear_given_up();
      hear_unreached();
      const bool busy = !waiting_.empty();
      looked_at = busy ? now : 0;
      // One at a time: what comes meanwhile may be more urgent than what waits.
      if (busy) now = serve_next(now);
      if (release_.has_value()) try_release();
      if (draining_ && waiting_.empty() && now - last_arrival_ >= options_.quiet) drained();
      if (now >= counters_due) {
        const std::lock_guard lock(counters_mutex_);
        counters_ = half_.counters();
        counters_due = now + k_counters_every;
      }
      meter_.count_turn(sources_in(std::span(arrivals).first(n)), polled - turn_began);
      turn_began = now;
      if (n > 0 || busy) continue;
      const duration_ns limit = sleep_limit();
      half_.wait(nanoseconds(options_.spin), nanoseconds(limit));
      // What the sleep took beyond its limit belongs to the turn that follows.
      const time_ns woken = monotonic_now();
      turn_began = woken - (woken - now > limit ? woken - now - limit : 0);
    }
  }

  duration_ns sleep_limit() const { return draining_ ? options_.quiet / 4 : k_sleep_max; }

  void admit(const transport::arrival& work, time_ns now, duration_ns unseen) {
    const waiting_calls::verdict v = waiting_.admit(work, now, unseen);
    if (v.code != status::ok) refuse(work, v);
  }

  void refuse(const transport::arrival& work, const waiting_calls::verdict& v) {
    half_.give_back(work.ticket, 0, v.code, v.detail);
    meter_.count_end(v.code, work.rows);
    ended_.fetch_add(1, std::memory_order_relaxed);
  }

  void hear_given_up() {
    std::array<transport::arrival_ticket, k_arrivals_max> tickets;
    const std::size_t n = half_.poll_given_up(tickets);
    for (std::size_t i = 0; i < n; ++i) {
      if (!waiting_.give_up(tickets[i])) continue;
      half_.give_back(tickets[i], 0, status::cancelled, 0);
      meter_.count_end(status::cancelled, 0);
      ended_.fetch_add(1, std::memory_order_relaxed);
    }
  }

  // The core has them detached then, as any that is refused.
  void hear_unreached() {
    std::array<source_id, k_arrivals_max> sources;
    const std::size_t n = half_.poll_unreached(sources);
    for (std::size_t i = 0; i < n; ++i) {
      if (sources[i].value >= attached_.size()) continue;
      out_.on_attached({.source = sources[i],
                        .incarnation = attached_[sources[i].value],
                        .accepted = false,
                        .text = "its connection broke and could not be made again",
                        .gone = true});
    }
  }

  // Returns the time then.
  time_ns serve_next(time_ns now) {
    waiting_calls::verdict late;
    const transport::arrival& work = waiting_.next(now, late);
    if (late.code != status::ok) {
      refuse(work, late);
      return now;
    }
    busy_since_.store(now, std::memory_order_relaxed);
    transport::wait_record wait{.peer = work.source.value,
                                .session = work.key.session,
                                .step = work.key.step,
                                .layer = work.key.layer,
                                .micro_batch = work.key.micro_batch,
                                .chunk = work.key.chunk,
                                .attempt = work.key.attempt,
                                .bytes_due = work.hidden.size(),
                                .bytes_seen = work.hidden.size()};
    wait.outcome = layer_.serve(work);
    busy_since_.store(0, std::memory_order_relaxed);
    ended_.fetch_add(1, std::memory_order_relaxed);
    rows_.store(layer_.rows_total(), std::memory_order_relaxed);
    wait.ended = monotonic_now();
    meter_.count(work, layer_.last(), wait.outcome, now, wait.ended);
    wait.age = wait.ended - now;
    waits_.record(wait);
    // What was refused before it was computed says nothing about the next call's time.
    if (wait.outcome == status::ok) waiting_.served(wait.age, wait.ended);
    return wait.ended;
  }

  void obey() {
    for (engine_command& command : mail_.take()) {
      std::visit([this](auto& c) { act(c); }, command);
    }
  }

  void act(serve_command& c) { layer_.install(std::move(c.table), c.first_slot, c.resolution); }

  void act(const release_command& c) {
    release_ = c.older_than;
    try_release();
  }

  void act(const attach_command& c) {
    const transport::source_shape shape = shape_of(c.source);
    expected<void> done = layer_.check_source(shape);
    if (done && c.source.source.value >= attached_.size()) {
      done = fail(reason::limit_exceeded, "source id", c.source.source.value, attached_.size() - 1);
    }
    if (done) {
      const auto* first = reinterpret_cast<const std::byte*>(c.source.address.data());
      done = half_.attach_source({.source = c.source.source,
                                  .session = c.source.session,
                                  .incarnation = c.source.incarnation},
                                 shape, {first, first + c.source.address.size()});
    }
    if (done) {
      // Rows of an earlier incarnation at this place went with it.
      waiting_.attach(c.source.source, c.source.tenant, c.source.weight, c.source.urgency);
      layer_.attach(c.source.source);
      attached_[c.source.source.value] = c.source.incarnation;
    }
    out_.on_attached({.source = c.source.source,
                      .incarnation = c.source.incarnation,
                      .accepted = done.has_value(),
                      .text = done ? std::string() : done.error().text});
  }

  void act(const detach_command& c) {
    // A late DETACH of an earlier incarnation must not end the one that took its place.
    if (c.source.value >= attached_.size() || attached_[c.source.value] != c.incarnation) return;
    attached_[c.source.value] = {};
    waiting_.detach(c.source);
    half_.detach_source(c.source);
    layer_.detach(c.source);
  }

  void act(adapters_command& c) { layer_.install(std::move(c.adapters)); }

  void act(const drain_command&) {
    draining_ = true;
    last_arrival_ = monotonic_now();
  }

  void try_release() {
    if (waiting_.holds_before(*release_) || !layer_.release(*release_)) return;
    out_.on_released({.generation = *release_});
    release_.reset();
  }

  void drained() {
    draining_ = false;
    out_.on_drained();
  }

  void add_counts(engine_progress& p) {
    slot_counts::reading now = layer_.counts().snapshot();
    if (now.generation == reported_.generation && now.counts == reported_.counts) return;
    p.counted_generation = now.generation;
    p.counts = now.counts;
    reported_ = std::move(now);
  }

  const engine_options options_;
  transport::WorkerHalf& half_;
  const sinks out_;
  MoeLayer layer_;
  waiting_calls waiting_;
  mailbox mail_;
  std::thread thread_;

  std::atomic<bool> stopping_{false};
  std::atomic<std::uint64_t> tick_{0};
  std::atomic<std::uint64_t> ended_{0};
  std::atomic<std::uint64_t> rows_{0};
  std::atomic<time_ns> busy_since_{0};
  engine_meter meter_;

  transport::wait_ring waits_;

  // Engine thread only.
  std::vector<incarnation_id> attached_;  // by source id; 0 = none
  std::optional<generation_number> release_;
  bool draining_ = false;
  time_ns last_arrival_ = 0;

  mutable std::mutex counters_mutex_;
  transport::carrier_counters counters_;

  slot_counts::reading reported_;  // the caller of progress(true) only
};

engine::engine(const engine_options& options, kernels::Backend& backend,
               transport::WorkerHalf& half, sinks out)
    : loop_(std::make_unique<loop>(options, backend, half, std::move(out))) {}

engine::~engine() { loop_->stop(); }

void engine::start() { loop_->start(); }
void engine::stop() { loop_->stop(); }

void engine::post_serve(std::shared_ptr<const generation_table> table, std::uint32_t first_slot,
                        std::uint64_t resolution) {
  MOETIER_ASSERT(table != nullptr);
  loop_->post(serve_command{std::move(table), first_slot, resolution});
}
void engine::post_release(generation_number older_than) {
  loop_->post(release_command{older_than});
}
void engine::post_attach(const control::source_attachment& source) {
  loop_->post(attach_command{source});
}
void engine::post_detach(source_id source, incarnation_id incarnation) {
  loop_->post(detach_command{source, incarnation});
}
void engine::post_adapters(std::shared_ptr<const adapter_set> adapters) {
  loop_->post(adapters_command{std::move(adapters)});
}
void engine::post_drain() { loop_->post(drain_command{}); }

engine_reading engine::reading() const { return loop_->reading(); }
engine_progress engine::progress(bool with_counts) { return loop_->progress(with_counts); }
std::uint64_t engine::tick() const noexcept { return loop_->tick(); }
transport::carrier_counters engine::carrier() const { return loop_->carrier(); }
queue_figures engine::queue() const noexcept { return loop_->queue(); }
const transport::wait_ring& engine::waits() const noexcept { return loop_->waits(); }

}  // namespace moetier::workers
