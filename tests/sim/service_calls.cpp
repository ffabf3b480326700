// Calls of an attention service: the product's source half on a fiber, over the simulated wire.
// What comes back is compared bit by bit with what the experts' formula gives, whatever happened on
// the way; a failed step is replayed as the protocol asks of a caller.

#include <algorithm>
#include <bit>

#include <fmt/core.h>

#include "tests/sim/world.hpp"
#include "tests/transport/client/toy_experts.hpp"

namespace moetier::sim {

using namespace client;  // NOLINT

namespace {

constexpr duration_ns k_between_steps = 50 * k_millisecond;
constexpr duration_ns k_call_limit = 450 * k_millisecond;
constexpr int k_step_replays_max = 2;

// How a call may end: right, or in one of these.
bool is_allowed(status s) {
  return s == status::timeout || s == status::unavailable || s == status::stale_generation ||
         s == status::corrupt;
}

}  // namespace

struct world::call {
  layer_id layer;
  std::uint16_t micro_batch = 0;
  std::uint32_t tokens = 0;
  std::uint32_t k = 0;
  std::uint32_t width = 0;
  std::vector<float> hidden;
  std::vector<std::int32_t> ids;
  std::vector<float> weights;
  std::vector<float> out;
  time_ns begun = 0;
  time_ns deadline = 0;
  time_ns collected = 0;  // when its caller came for it
};

void world::open_source(std::size_t s) {
  service_host& host = services_[s];
  check(host.snapshot != nullptr, "a session without a snapshot");
  const std::uint64_t life = host.life;
  wire_carrier carrier(
      wire_, [this, s, life] { wake_caller(s, life); }, host.endpoint);
  const source_session_options wish{
      .session = *host.session,
      .source = host.source,
      .incarnation = host.incarnation,
      .tokens_max = k_tokens_max,
      .micro_batches = host.micro_batches,
      .top_k = head_options_.model.top_k,
      .mode = kernels::return_mode::exact,
      .rows_per_chunk_max = static_cast<std::uint32_t>(dice_.below(2) * 3),
      .call_deadline = k_call_limit,
      .replays_max = 2,
      .wait_newer = [this, s](const transport::routing_snapshot& seen,
                              duration_ns limit) -> transport::snapshot_ptr {
        const time_ns until = clock_.now() + limit;
        clock_.at(until, [this, s, l = services_[s].life] { wake_caller(s, l); });
        while (!transport::is_newer(*services_[s].snapshot, seen)) {
          if (clock_.now() >= until) return nullptr;
          fiber::wait();
        }
        return services_[s].snapshot;
      },
      .newest = [this, s] { return services_[s].snapshot; },
      .suspicion = [this, s] { return services_[s].suspicion; },
      .report_late =
          [this, s](worker_id worker, incarnation_id incarnation) {
            const service_host& from = services_[s];
            if (from.connected_life == 0) return;
            clock_.after(hop(), [this, life = from.connected_life,
                                 e = coordinator::late_report{*from.session, from.incarnation,
                                                              worker, incarnation}] {
              in_coordinator(life, [this, e] { step_coordinator(e); });
            });
          }};
  auto opened = source_session::open(carrier, wish, host.snapshot);
  check(opened.has_value(), opened ? "" : "a source half: " + opened.error().text);
  host.source_half = std::move(*opened);
}

// Killed: nobody is told. Else the half says farewell.
void world::drop_source(std::size_t s, bool killed) {
  service_host& host = services_[s];
  if (killed && host.endpoint != 0) wire_.end(host.endpoint);
  host.caller.reset();
  host.source_half.reset();
  host.endpoint = 0;
}

void world::begin_calls(std::size_t s) {
  service_host& host = services_[s];
  host.caller = std::make_unique<fiber>([this, s] { call_loop(s); });
  clock_.after(hop(), [this, s, life = host.life] { wake_caller(s, life); });
}

void world::wake_caller(std::size_t s, std::uint64_t life) {
  in_service(s, life, [this, s] {
    service_host& host = services_[s];
    if (host.caller && !host.caller->done()) host.caller->resume();
  });
}

void world::sleep_in_call(std::size_t s, duration_ns how_long) {
  const time_ns until = clock_.now() + how_long;
  clock_.at(until, [this, s, life = services_[s].life] { wake_caller(s, life); });
  while (clock_.now() < until) fiber::wait();
}

void world::call_loop(std::size_t s) {
  for (;;) {
    sleep_in_call(s, dice_.below(strict_ ? k_between_steps : 2 * k_between_steps));
    std::vector<call> calls(services_[s].micro_batches);
    auto ended = one_step(s, false, calls);
    for (int again = 0; !ended && again < k_step_replays_max && is_retryable(ended.error().code);
         ++again) {
      ended = one_step(s, true, calls);
    }
  }
}

expected<void> world::one_step(std::size_t s, bool replay, std::vector<call>& calls) {
  source_session& source = *services_[s].source_half;
  if (auto begun = source.step_begin(replay); !begun) {
    check(is_allowed(begun.error().code), "step_begin: " + begun.error().text);
    return begun;
  }
  const transport::routing_snapshot& snapshot = source.snapshot();
  const std::uint32_t width = snapshot.model.hidden_size;
  // Counted as open while it is; a killed service's call is nobody's any more.
  struct open_calls {
    std::uint64_t& count;
    std::uint64_t mine = 0;
    ~open_calls() { count -= mine; }
  } open{calls_open_};
  std::size_t submitted = 0;
  std::vector<expected<void>> ends;
  for (std::size_t u = 0; u < calls.size(); ++u) {
    call& c = calls[u];
    if (!replay || c.width == 0) {  // the first attempt may not have come so far
      c.layer = snapshot.model.moe_layers[dice_.below(snapshot.model.moe_layers.size())];
      c.micro_batch = static_cast<std::uint16_t>(u);
      c.tokens = static_cast<std::uint32_t>(dice_.below(k_tokens_max + 1));
      c.k = head_options_.model.top_k;
      c.width = width;
      c.hidden.resize(std::size_t{c.tokens} * width);
      for (float& x : c.hidden) x = static_cast<float>(dice_.below(2001)) / 500.0F - 2.0F;
      c.ids.clear();
      c.weights.clear();
      for (std::uint32_t t = 0; t < c.tokens; ++t) {
        const auto first = static_cast<std::int32_t>(dice_.below(snapshot.model.experts));
        for (std::uint32_t j = 0; j < c.k; ++j) {
          c.ids.push_back((first + static_cast<std::int32_t>(j)) %
                          static_cast<std::int32_t>(snapshot.model.experts));
          c.weights.push_back(static_cast<float>(dice_.between(1, 1000)) / 1000.0F);
        }
      }
    }
    c.begun = clock_.now();
    c.deadline = c.begun + k_call_limit;
    const auto sent = source.submit({.layer = c.layer,
                                     .micro_batch = c.micro_batch,
                                     .tokens = c.tokens,
                                     .hidden = c.hidden.data(),
                                     .hidden_pitch = width * sizeof(float),
                                     .ids = c.ids,
                                     .weights = c.weights});
    ++calls_open_;
    ++open.mine;
    if (!sent) {
      judge(s, c, sent);
      break;
    }
    ++submitted;
  }
  for (std::size_t u = 0; u < submitted; ++u) {
    call& c = calls[u];
    c.out.assign(std::size_t{c.tokens} * width, -7.0F);
    c.collected = clock_.now();
    const auto ended =
        source.collect(c.micro_batch, {.output = c.out.data(), .pitch = width * sizeof(float)});
    replays_ += ended ? source.last_times().replays : 0;
    if (ended && strict_ && c.begun >= strict_since_) {
      check(source.last_times().replays == 0 && source.last_end().attempt == 0,
            fmt::format("a call of service {} was replayed though all faults are over", s));
    }
    judge(s, c, ended);
  }
  return source.step_end();
}

void world::judge(std::size_t s, const call& c, const expected<void>& ended) {
  const bool was_frozen = services_[s].frozen_until > c.begun;
  check(was_frozen || clock_.now() <= c.deadline + 100 * k_millisecond,
        fmt::format("a call of service {} ended {} ms after its deadline", s,
                    (clock_.now() - c.deadline) / k_millisecond));
  ++(ended ? calls_ok_ : calls_failed_);
  if (!ended) {
    trace([&] { return fmt::format("service {}: {}", s, ended.error().text); });
    check(is_allowed(ended.error().code),
          fmt::format("a call of service {} ended {}: {}", s, status_name(ended.error().code),
                      ended.error().text));
    if (ended.error().why == reason::worker_late && !was_frozen) judge_timeout(s, c);
    check(!strict_ || c.begun < strict_since_,
          fmt::format("a call of service {} ended {} though all faults are over: {}", s,
                      status_name(ended.error().code), ended.error().text));
    return;
  }
  for (std::uint32_t t = 0; t < c.tokens; ++t) {
    const auto right = toy::exact_row(c.hidden.data() + std::size_t{t} * c.width, c.width,
                                      c.ids.data() + std::size_t{t} * c.k,
                                      c.weights.data() + std::size_t{t} * c.k, c.k);
    for (std::uint32_t h = 0; h < c.width; ++h) {
      check(std::bit_cast<std::uint32_t>(right[h]) ==
                std::bit_cast<std::uint32_t>(c.out[std::size_t{t} * c.width + h]),
            fmt::format("a wrong row was delivered to service {}", s));
    }
  }
}

// Nobody waits until the deadline for a worker that is known to be masked, or known to be suspect
// while all that is wanted lies elsewhere too. A call that lacks a replica ends when it is
// collected, which may be late.
void world::judge_timeout(std::size_t s, const call& c) {
  constexpr duration_ns k_time_to_act = 100 * k_millisecond;
  const service_host& host = services_[s];
  const call_end& end = host.source_half->last_end();
  if (end.attempt >= 2) return;
  const transport::routing_snapshot& snapshot = *host.snapshot;
  const auto for_long = [&](time_ns since) { return clock_.now() - since > k_time_to_act; };
  if (!for_long(host.snapshot_at)) return;
  std::set<worker_id> suspects;
  // Where the other replica is one that it lost not long ago, a suspect is the better choice.
  const bool lost_one = host.broken_at != 0 && c.begun < host.broken_at + 2 * k_second;
  if (host.suspicion && for_long(host.suspicion_at) && !lost_one) {
    for (const auto& suspect : host.suspicion->workers) suspects.insert(suspect.worker);
  }
  const auto& placement = snapshot.placement;
  const auto layer = static_cast<std::size_t>(placement.index_of(c.layer));
  const auto all_lie_outside = [&](const std::set<worker_id>& avoided) {
    return std::all_of(c.ids.begin(), c.ids.end(), [&](std::int32_t expert) {
      const auto replicas = placement.replicas(layer, static_cast<std::uint32_t>(expert));
      return std::any_of(replicas.begin(), replicas.end(), [&](std::uint32_t d) {
        const auto& holder = snapshot.workers[placement.span_of(d)];
        return holder.live && !avoided.contains(holder.worker);
      });
    });
  };
  for (const transport::snapshot_worker& entry : snapshot.workers) {
    if (entry.worker != end.worker || entry.live) continue;
    check(!for_long(c.collected) && !all_lie_outside({}),
          [&] { return fmt::format("service {} waited for a masked worker", s); });
  }
  check(!suspects.contains(end.worker) || !all_lie_outside(suspects), [&] {
    return fmt::format("service {} waited for a suspect whose rows lie elsewhere too", s);
  });
}

}  // namespace moetier::sim
