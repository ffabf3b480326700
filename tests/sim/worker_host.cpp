// The shell around a worker's core: weight store, engine and link as models. A page is the expert
// that lies in it, so a wrong page shows in every answer computed from it.

#include <algorithm>

#include <fmt/core.h>

#include "tests/schemas/resolution/toy_environment.hpp"
#include "tests/sim/world.hpp"

namespace moetier::sim {

using namespace workers;

namespace {

std::uint64_t checksum_of(std::size_t layer_index, std::int32_t expert) {
  return expert < 0 ? 0 : mix(layer_index * 65536 + static_cast<std::uint64_t>(expert)) | 1;
}

template <class Message>
constexpr bool k_is_for_one_process =
    std::is_same_v<Message, control::welcome> || std::is_same_v<Message, control::refused> ||
    std::is_same_v<Message, control::prepare> || std::is_same_v<Message, control::abort_plan> ||
    std::is_same_v<Message, control::commit> || std::is_same_v<Message, control::release> ||
    std::is_same_v<Message, control::probe>;

bool is_for_another(const control::message& m, incarnation_id self) {
  return std::visit(
      [&](const auto& command) {
        if constexpr (k_is_for_one_process<std::decay_t<decltype(command)>>) {
          return command.incarnation != self;
        } else {
          return false;
        }
      },
      m);
}

}  // namespace

void world::in_worker(std::size_t w, std::uint64_t life, std::function<void()> what) {
  in_process(workers_[w], life, std::move(what));
}

void world::note_standstill(worker_host& host) {
  if (clock_.now() >= std::max(host.frozen_until, host.stuck_until)) {
    host.still_since = clock_.now();
  }
  host.was_still = true;
}

// Its clock runs on, and what comes meanwhile waits for it.
void world::freeze_worker(std::size_t w) {
  worker_host& host = workers_[w];
  note_standstill(host);
  if (clock_.now() >= host.frozen_until) host.frozen_since = clock_.now();
  host.frozen_until = std::max(host.frozen_until, clock_.now() + dice_.below(2 * k_second));
}

// Its process runs on, its engine does not.
void world::stick_worker(std::size_t w) {
  worker_host& host = workers_[w];
  note_standstill(host);
  if (clock_.now() >= host.stuck_until) host.stuck_since = clock_.now();
  host.stuck_until = std::max(host.stuck_until, clock_.now() + dice_.below(2 * k_second));
}

world::worker_host* world::find_worker(incarnation_id incarnation) {
  for (worker_host& host : workers_) {
    if (host.up && host.incarnation == incarnation) return &host;
  }
  return nullptr;
}

void world::start_worker(std::size_t w) {
  worker_host& old = workers_[w];
  if (old.up) return;
  worker_host host;
  host.name = old.name;
  host.life = old.life + 1;
  host.incarnation = incarnation_id(dice_.next() | 1);
  host.up = true;
  core_options options;
  options.name = host.name;
  options.incarnation = host.incarnation;
  options.node = host.incarnation.value;
  options.model_fingerprint = head_options_.model.fingerprint;
  options.checkpoint_digest = 77;
  options.slots = slots_wished_;
  options.environment = toy::environment_document();
  options.carrier = "model";
  const std::uint64_t life = host.life;
  host.half = wire_.make_worker(
      {.identity = {transport::k_worker_unnumbered, host.incarnation},
       .sources_max = head_options_.sources_max},
      [this, w, life] { engine_turn(w, life); }, host.endpoint);
  for (const std::byte b : host.half->address()) {
    options.address.push_back(static_cast<std::uint8_t>(b));
  }
  options.heartbeat_interval = head_options_.heartbeat_interval;
  options.heartbeat_timeout = head_options_.heartbeat_timeout;
  options.drain_limit = k_second;
  host.core = std::make_unique<core>(std::move(options));
  host.touched = old.life > 0;  // its name was left out once: it may be so for a while
  trace([&] { return fmt::format("{} starts as {:x}", host.name, host.incarnation.value); });
  workers_[w] = std::move(host);
  clock_.after(dice_.below(100 * k_millisecond), [this, w, life] { worker_beat(w, life); });
  clock_.after(dice_.below(20 * k_millisecond),
               [this, w, life] { in_worker(w, life, [this, w] { connect(w); }); });
}

void world::kill_worker(std::size_t w) {
  worker_host& host = workers_[w];
  if (!host.up) return;
  host.up = false;
  wire_.end(host.endpoint);
  host.queue.clear();
  host.half.reset();
  trace([&] { return host.name + " dies"; });
  if (host.link)
    close_from_worker(*std::exchange(host.link, std::nullopt), !dice_.chance(rates_.half_open));
  clock_.after(dice_.between(20 * k_millisecond, 2 * k_second), [this, w] { start_worker(w); });
}

void world::reconnect_later(std::size_t w) {
  const std::uint64_t life = workers_[w].life;
  clock_.after(dice_.between(5 * k_millisecond, 150 * k_millisecond),
               [this, w, life] { in_worker(w, life, [this, w] { connect(w); }); });
}

void world::worker_beat(std::size_t w, std::uint64_t life) {
  in_worker(w, life, [this, w, life] {
    worker_host& host = workers_[w];
    engine_progress p;
    if (clock_.now() >= host.stuck_until) ++host.tick;
    p.tick = host.tick;
    p.rows_total = host.rows;
    if (host.computing) p.oldest_batch_ns = clock_.now() - host.busy_since + 1;
    if (host.serving) p.counted_generation = host.serving->generation;
    step_worker(w, p);
    step_worker(w, time_passed{});
    if (workers_[w].up && workers_[w].life == life) {
      clock_.after(head_options_.heartbeat_interval, [this, w, life] { worker_beat(w, life); });
    }
  });
}

void world::step_worker(std::size_t w, const event& e) {
  worker_host& host = workers_[w];
  if (!host.up) return;
  const std::uint64_t life = host.life;
  const auto* message = std::get_if<coordinator_message>(&e);
  const auto* commit = message ? std::get_if<control::commit>(&message->body) : nullptr;
  const bool repeated = commit && host.link && commit->incarnation == host.incarnation &&
                        commit->epoch >= host.epoch && host.serving &&
                        host.serving->generation == commit->generation &&
                        host.serving->plan == commit->plan;
  effects all = host.core->step(e, clock_.now());
  const auto says_committed = [](const effect& f) {
    const auto* word = std::get_if<send>(&f);
    return word && std::holds_alternative<control::committed>(word->body);
  };
  check(!repeated || std::any_of(all.begin(), all.end(), says_committed),
        "a repeated COMMIT of what is served was not answered");
  check(!message || all.empty() || !is_for_another(message->body, host.incarnation),
        "a worker obeyed what an earlier process of its name was told");
  const worker_summary after = host.core->summary();
  check(after.epoch >= host.epoch, "a worker obeyed an older epoch");
  host.epoch = after.epoch;
  check(!head_.disk || after.epoch <= head_.disk->epoch, "a worker knows an epoch before the disk");
  check(after.sources <= head_options_.sources_max, "an attach table grows beyond its bound");
  const duration_ns lease = head_options_.heartbeat_timeout;
  const bool cut_off =
      clock_.now() < host.cut_down_until && clock_.now() - host.cut_down_since > lease + lease / 5;
  check(!cut_off || !after.leased || !std::holds_alternative<time_passed>(e),
        [&] { return host.name + " believes in its lease though nobody answered"; });
  for (effect& f : all) {
    if (!workers_[w].up || workers_[w].life != life) return;
    apply(w, f);
  }
}

void world::apply(std::size_t w, effect& e) {
  worker_host& host = workers_[w];
  const std::uint64_t life = host.life;
  if (auto* word = std::get_if<send>(&e)) {
    if (host.link) to_coordinator(links_.at(*host.link), word->body);
  } else if (std::holds_alternative<drop_link>(e)) {
    if (!host.link) return;
    close_from_worker(*std::exchange(host.link, std::nullopt), true);
    clock_.after(
        0, [this, w, life] { in_worker(w, life, [this, w] { step_worker(w, link_lost{}); }); });
    reconnect_later(w);
  } else if (auto* l = std::get_if<load_plan>(&e)) {
    load(w, *l);
  } else if (auto* c = std::get_if<cancel_load>(&e)) {
    check(!host.serving || host.serving->plan != c->plan, "a plan in service was cancelled");
    host.loaded.erase(c->plan);
    host.loading.erase(c->plan);
  } else if (auto* v = std::get_if<serve_generation>(&e)) {
    const auto plan = host.loaded.find(v->plan);
    check(plan != host.loaded.end() && plan->second.generation == v->generation,
          "a worker serves what it does not hold");
    check(head_.disk && head_.disk->plan == v->plan && head_.disk->generation == v->generation,
          "a worker serves what was not decided");
    host.serving = std::move(plan->second);
    host.serving->first_slot = v->first_slot;
    host.serving->resolution = v->resolution;
    host.loaded.erase(plan);
  } else if (auto* a = std::get_if<attach_source>(&e)) {
    const auto& s = a->source;
    bool accepted = !dice_.chance(rates_.attach_refused);
    if (accepted) {
      check(!host.sources.contains(s.source), "a place in the attach table is taken");
      const auto* first = reinterpret_cast<const std::byte*>(s.address.data());
      accepted = host.half
                     ->attach_source({s.source, s.session, s.incarnation},
                                     {.rows_max = s.rows_max,
                                      .hidden_stride = s.hidden_stride,
                                      .top_k = s.top_k,
                                      .return_stride = s.return_stride,
                                      .return_rows_max = s.return_rows_max,
                                      .banks = s.banks},
                                     {first, first + s.address.size()})
                     .has_value();
      if (accepted) host.sources[s.source] = {s.session, s.incarnation};
    }
    clock_.after(dice_.below(5 * k_millisecond), [this, w, life, s, accepted] {
      in_worker(w, life, [this, w, s, accepted] {
        step_worker(
            w, source_attach_done{s.source, s.incarnation, accepted, accepted ? "" : "no memory"});
      });
    });
  } else if (auto* d = std::get_if<detach_source>(&e)) {
    const auto at = host.sources.find(d->source);
    if (at != host.sources.end() && at->second.incarnation == d->incarnation) {
      host.sources.erase(at);
      forget_arrivals(host, d->source);
      host.half->detach_source(d->source);
    }
  } else if (auto* r = std::get_if<load_adapter>(&e)) {
    const bool loaded = !dice_.chance(rates_.adapter_fails);
    host.loader_until = std::max(host.loader_until, clock_.now()) + dice_.below(30 * k_millisecond);
    clock_.at(host.loader_until, [this, w, life, held = r->adapter, loaded] {
      in_worker(w, life, [this, w, held, loaded] {
        if (loaded) workers_[w].adapters[held.adapter] = held.path;
        step_worker(w, adapter_load_done{held, loaded, loaded ? "" : "no such file"});
      });
    });
  } else if (auto* o = std::get_if<drop_adapter>(&e)) {
    host.loader_until = std::max(host.loader_until, clock_.now());
    clock_.at(host.loader_until, [this, w, life, id = o->adapter] {
      in_worker(w, life, [this, w, id] { workers_[w].adapters.erase(id); });
    });
  } else if (std::holds_alternative<drain_engine>(e)) {
    host.ending = true;
    clock_.after(dice_.below(200 * k_millisecond), [this, w, life] {
      in_worker(w, life, [this, w] { step_worker(w, engine_drained{}); });
    });
  } else if (const auto* said = std::get_if<log_event>(&e)) {
    trace([&] { return fmt::format("{}: {} {}", host.name, said->event, said->detail); });
  } else if (std::holds_alternative<stopped>(e)) {
    kill_worker(w);
  }
}

void world::load(std::size_t w, const load_plan& e) {
  held_plan plan;
  plan.generation = e.generation;
  plan.plan = e.plan;
  const int span = e.placement.span_index(e.self);
  check(span >= 0 && e.placement.spans()[static_cast<std::size_t>(span)].name == workers_[w].name,
        "a worker loads another one's slots");
  const auto own = static_cast<std::size_t>(span);
  std::vector<std::uint64_t> sums;
  // Wrong bytes can be told where there are right ones to compare with: the record's, or a
  // replica's.
  const std::int32_t first_expert = e.placement.layers()[0].experts[e.placement.first_dense(own)];
  const bool comparable =
      first_expert >= 0 &&
      ((head_.disk && head_.disk->generation.value != 0) ||
       e.placement.replicas(0, static_cast<std::uint32_t>(first_expert)).size() > 1);
  const bool spoils = comparable && dice_.chance(rates_.load_spoils);
  for (std::size_t layer = 0; layer < e.placement.layers().size(); ++layer) {
    const auto& experts = e.placement.layers()[layer].experts;
    const auto first = experts.begin() + e.placement.first_dense(own);
    plan.pages.emplace_back(first, first + e.placement.spans()[own].slots);
    if (spoils && layer == 0) {
      plan.pages[0][0] += 1000 + static_cast<std::int32_t>(dice_.below(1'000'000));
    }
    for (const std::int32_t expert : plan.pages.back()) sums.push_back(checksum_of(layer, expert));
  }
  const bool fails = dice_.chance(rates_.load_fails);
  const std::uint64_t turn = workers_[w].loading[e.plan] = dice_.next();
  const auto finish = [this, w, plan, sums, fails, turn] {
    const auto asked = workers_[w].loading.find(plan.plan);
    if (asked == workers_[w].loading.end() || asked->second != turn) return;  // cancelled
    workers_[w].loading.erase(asked);
    if (fails) {
      const error why = make_error(reason::file_unreadable, "shard", "it is gone");
      return step_worker(w, plan_load_failed{plan.generation, plan.plan, why});
    }
    workers_[w].loaded[plan.plan] = plan;
    step_worker(w, plan_loaded{plan.generation, plan.plan, sums});
  };
  clock_.after(dice_.between(k_millisecond, 300 * k_millisecond),
               [this, w, life = workers_[w].life, finish] { in_worker(w, life, finish); });
}

}  // namespace moetier::sim
