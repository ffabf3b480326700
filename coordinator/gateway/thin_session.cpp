#include "coordinator/gateway/thin_session.hpp"

#include <pthread.h>

#include <new>
#include <utility>

#include <fmt/core.h>

#include "coordinator/gateway/scarce.hpp"
#include "schemas/base/no_credit.hpp"

namespace moetier::coordinator {

thin_session::thin_session(transport::Communication& carrier, const client::snapshot_board& board,
                           const thin_session_hooks& hooks, const thin_session_options& options,
                           opened done)
    : options_(options),
      budget_(hooks.budget),
      tokens_per_second_(options.tokens_per_second),
      thread_([this, &carrier, &board, hooks, done = std::move(done)]() mutable {
        pthread_setname_np(pthread_self(), "moetier-thin");
        run(carrier, board, hooks, std::move(done));
        const std::lock_guard lock(mutex_);
        finished_ = true;
      }) {}

thin_session::~thin_session() {
  end();
  thread_.join();
}

void thin_session::forward(client::thin_rows rows, duration_ns limit, forwarded done) {
  const expected<void> admitted = admit(rows, limit, done);
  if (!admitted) return done(unexpected_error(admitted.error()));
  changed_.notify_one();
}

// Takes over rows and done, or neither.
expected<void> thin_session::admit(client::thin_rows& rows, duration_ns limit, forwarded& done) {
  const std::lock_guard lock(mutex_);
  if (auto room = room_locked(); !room) return room;
  auto share = budget_.take(client::bytes_held(rows, options_.top_k));
  if (!share) return unexpected_error(share.error());
  waiting_.push_back(
      {std::move(rows), std::move(*share), limit, monotonic_now() + limit, std::move(done)});
  serving_ = true;  // from here on, so that a burst cannot slip in before the thread wakes
  return {};
}

expected<void> thin_session::room() const {
  const std::lock_guard lock(mutex_);
  if (auto mine = room_locked(); !mine) return mine;
  return budget_.room();
}

expected<void> thin_session::room_locked() const {
  if (ended_) return fail(reason::session_closed, options_.session.value);
  if (!serving_ || waiting_.size() < options_.waiting_max) return {};
  return no_credit(fmt::format("a call of the session is served and {} of {} wait", waiting_.size(),
                               options_.waiting_max),
                   10 * k_millisecond);
}

void thin_session::end() noexcept {
  std::deque<job> dropped;
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    dropped.swap(waiting_);
  }
  changed_.notify_one();
  for (job& j : dropped) j.done(fail(reason::session_closed, options_.session.value));
}

bool thin_session::finished() const {
  const std::lock_guard lock(mutex_);
  return finished_;
}

transport::carrier_counters thin_session::carrier_counts() const {
  const std::lock_guard lock(mutex_);
  return carrier_;
}

expected<std::unique_ptr<client::source_session>> thin_session::open_source(
    transport::Communication& carrier, const client::snapshot_board& board,
    const thin_session_hooks& hooks) {
  client::source_session_options wish{
      .session = options_.session,
      .source = options_.source,
      .incarnation = options_.incarnation,
      .tokens_max = options_.tokens_max,
      .top_k = options_.top_k,
      .mode = static_cast<kernels::return_mode>(options_.return_mode),
      .shared_experts = options_.shared_experts,
      .flags_bad_rows = options_.flags_bad_rows,
      .call_deadline = options_.call_deadline,
      .tokens_per_second = [this] { return tokens_per_second_.load(std::memory_order_relaxed); },
      .wait_newer = [&board](const transport::routing_snapshot& seen,
                             duration_ns limit) { return board.wait_newer(seen, limit); },
      .newest = [&board] { return board.newest(); },
      .suspicion = [&board] { return board.suspicion(); },
      .report_late =
          [this, hooks](worker_id worker, incarnation_id incarnation) {
            if (hooks.report_late)
              hooks.report_late({options_.session, options_.incarnation, worker, incarnation});
          },
      .waits = &hooks.waits,
      .router = options_.gate_on_tier ? hooks.router : client::router_source{},
      .meter = &meter_};
  if (hooks.on_timeout) {
    wish.on_timeout = [hooks](const transport::wait_record& wait) {
      hooks.on_timeout(wait, hooks.waits);
    };
  }
  return client::source_session::open(carrier, wish, board.newest());
}

void thin_session::run(transport::Communication& carrier, const client::snapshot_board& board,
                       const thin_session_hooks& hooks, opened done) {
  auto source = of_scarce([&] { return open_source(carrier, board, hooks); });
  if (!source) return done(unexpected_error(source.error()));
  done(thin_place{(*source)->shape(), (*source)->address()});

  for (;;) {
    job next;
    {
      std::unique_lock lock(mutex_);
      carrier_ = (*source)->carrier_counts();
      serving_ = !waiting_.empty();
      changed_.wait(lock, [this] { return ended_ || !waiting_.empty(); });
      if (ended_) return;  // end() took what waited
      next = std::move(waiting_.front());
      waiting_.pop_front();
      serving_ = true;
    }
    expected<client::thin_result> result;
    try {
      result = serve(**source, next);
    } catch (const std::bad_alloc&) {
      result = fail(reason::memory_insufficient, "forward", next.rows.hidden.size(), 0);
    }
    next.done(std::move(result));
  }
}

expected<client::thin_result> thin_session::serve(client::source_session& source,
                                                  const job& call) const {
  const time_ns now = monotonic_now();
  if (now >= call.end) {
    return fail(reason::deadline_passed, "forward", call.limit / k_millisecond);
  }
  if (auto begun = source.step_begin(false); !begun) return unexpected_error(begun.error());
  const auto& model = source.snapshot().model;
  const std::size_t tokens = call.rows.tokens;
  client::thin_result result;
  result.output.resize(tokens * model.hidden_size);
  result.ids.resize(tokens * options_.top_k);
  result.weights.resize(tokens * options_.top_k);
  if (options_.flags_bad_rows) result.bad_rows.resize(tokens);

  const auto address = [](const std::vector<std::byte>& bytes) -> const void* {
    return bytes.empty() ? nullptr : bytes.data();
  };
  const auto& rows = call.rows;
  const client::layer_call in{.layer = rows.layer,
                              .tokens = rows.tokens,
                              .hidden = address(rows.hidden),
                              .hidden_type = rows.hidden_type,
                              .hidden_pitch = model.hidden_size * dtype_bytes(rows.hidden_type),
                              .logits = address(rows.logits),
                              .logits_type = rows.logits_type,
                              .logits_pitch = model.columns() * dtype_bytes(rows.logits_type),
                              .ids = rows.ids,
                              .weights = rows.weights,
                              .token_ids = rows.token_ids,
                              .adapter_ids = rows.adapter_ids,
                              .deadline = call.end - now};
  const client::layer_result out{.output = result.output.data(),
                                 .pitch = model.hidden_size * sizeof(float),
                                 .ids = result.ids,
                                 .weights = result.weights,
                                 .bad_rows = result.bad_rows};
  expected<void> ended = source.submit(in);
  if (ended) ended = source.collect(0, out);
  // The call's own error says more than the step's, which repeats it.
  const expected<void> step = source.step_end();
  if (ended && !step) ended = step;
  if (!ended) return unexpected_error(ended.error());
  result.generation = source.snapshot().generation;
  result.epoch = source.snapshot().epoch;
  return result;
}

}  // namespace moetier::coordinator
