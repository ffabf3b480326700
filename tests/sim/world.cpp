// A run: a world is drawn from the seed, faults happen for a while, then none, and everything must
// be well again in bounded time.

#include "tests/sim/world.hpp"

#include <fmt/core.h>

namespace moetier::sim {

namespace {

constexpr duration_ns k_heal_limit = 8 * k_second;  // from the last fault to a tier that is well
constexpr duration_ns k_strict_time = k_second;     // then every call must end well at once

// A quarter of the seeds know each fault at all; then it is anything from rare to constant.
std::uint32_t draw(dice& d, std::uint32_t most) {
  return d.chance(30'000) ? static_cast<std::uint32_t>(d.below(most)) : 0;
}

const schedule* virtual_clock = nullptr;

}  // namespace
}  // namespace moetier::sim

// The product's code asks for the time by this one function: here it is the run's.
moetier::time_ns moetier::monotonic_now() noexcept { return moetier::sim::virtual_clock->now(); }

namespace moetier::sim {

world::~world() {
  for (std::size_t s = 0; s < services_.size(); ++s) drop_source(s, true);
}

void world::check(bool fact, const std::string& text) {
  if (!fact) {
    throw violation(
        fmt::format("{} (at {} ms, event {})", text, clock_.now() / k_millisecond, clock_.done()));
  }
}

void world::print_trace(const std::string& text) const {
  fmt::print("{:10.3f} ms  {}\n", static_cast<double>(clock_.now()) / 1e6, text);
}

void world::in_process(process& p, std::uint64_t life, std::function<void()> what) {
  if (!p.up || p.life != life) return;
  if (clock_.now() >= p.frozen_until && p.waiting.empty()) return what();
  p.waiting.push_back({life, std::move(what)});
  if (p.waiting.size() == 1) thaw_in_time(p);
}

void world::thaw_in_time(process& p) {
  clock_.at(p.frozen_until, [this, &p] {
    while (!p.waiting.empty() && clock_.now() >= p.frozen_until) {
      const process::waiting_event next = std::move(p.waiting.front());
      p.waiting.pop_front();
      if (p.up && p.life == next.life) next.what();
    }
    if (!p.waiting.empty()) thaw_in_time(p);
  });
}

world::world(std::uint64_t seed, bool traced) : dice_(seed), traced_(traced) {
  virtual_clock = &clock_;
  workers_.resize(dice_.between(1, 5));
  services_.resize(dice_.between(1, 4));
  for (std::size_t w = 0; w < workers_.size(); ++w) workers_[w].name = fmt::format("worker-{}", w);

  model_description& m = head_options_.model;
  m.model_type = "qwen3_moe";
  m.hidden_size = 16;
  m.intermediate_size = 8;
  m.experts = static_cast<std::uint32_t>(dice_.between(workers_.size(), 9));
  m.top_k = std::min(m.experts, 2u);
  m.layers_total = static_cast<std::uint32_t>(dice_.between(1, 3));
  for (std::uint32_t l = 0; l < m.layers_total; ++l) {
    m.moe_layers.push_back(layer_id(static_cast<std::uint16_t>(l)));
  }
  m.routing.method = routing_method::renormalize;
  m.router_width = 16;
  m.fingerprint = 0x5eed;
  if (dice_.chance(60'000)) {  // replicas: more slots than experts
    const auto count = static_cast<std::uint32_t>(workers_.size());
    slots_wished_ = (m.experts + count - 1) / count + static_cast<std::uint32_t>(dice_.below(3));
  }
  head_options_.workers_expected = static_cast<std::uint32_t>(workers_.size());
  head_options_.node = 1;
  head_options_.sessions_max = 8;
  head_options_.sources_max = 8;
  head_options_.tokens_max = 16;
  // Service 0 may have one session, and none for decode; the others share an entry, not its limits.
  coordinator::tenant_limits strict, open;
  strict.match = "service-0";
  strict.sessions = 1;
  strict.weight = 3;
  strict.highest = deadline_class::prefill;
  open.tokens_in_flight = 24;
  head_options_.tenants = {strict, open};

  rates_.lose = draw(dice_, 5'000);
  rates_.repeat = draw(dice_, 20'000);
  rates_.reorder = draw(dice_, 10'000);
  rates_.late_copy = draw(dice_, 5'000);
  rates_.damage = draw(dice_, 2'000);
  rates_.load_fails = draw(dice_, 20'000);
  rates_.load_spoils = draw(dice_, 20'000);
  rates_.attach_refused = draw(dice_, 20'000);
  rates_.disk_fails = draw(dice_, 5'000);
  rates_.crash_in_step = draw(dice_, 2'000);
  rates_.half_open = draw(dice_, 50'000);
  rates_.adapter_fails = draw(dice_, 30'000);
  wire_.rates = {.repeat = draw(dice_, 20'000),
                 .damage = draw(dice_, 2'000),
                 .silent_death = draw(dice_, 100'000)};
  // In many runs nothing but what befalls a worker can cost it its place: only there can a wrong
  // verdict be told from a right one.
  if (dice_.chance(35'000)) {
    rates_ = {.disk_fails = rates_.disk_fails,
              .crash_in_step = rates_.crash_in_step,
              .adapter_fails = rates_.adapter_fails};
  }
  rates_were_kind_ = rates_.spare_the_control_links();
  head_options_.lora = dice_.chance(30'000);
  fault_time_ = dice_.between(k_second, 5 * k_second);
}

void world::plan_faults() {
  const time_ns first = clock_.now();
  const auto moments = [&](std::uint64_t most, auto what) {
    for (std::uint64_t n = dice_.chance(50'000) ? dice_.below(most + 1) : 0; n > 0; --n) {
      clock_.at(first + dice_.below(fault_time_), [this, what] {
        if (!quiet_) what();
      });
    }
  };
  const auto any_worker = [this] { return dice_.below(workers_.size()); };
  const auto any_service = [this] { return dice_.below(services_.size()); };
  moments(3, [this] { kill_coordinator(); });
  moments(1, [this] {
    if (head_.up)
      in_coordinator(head_.life, [this] { step_coordinator(coordinator::shut_down{}); });
  });
  const auto freeze = [this](time_ns& until) {
    until = std::max(until, clock_.now() + dice_.below(2 * k_second));
  };
  moments(2, [this] {
    if (clock_.now() >= head_.frozen_until) {
      head_.woke_at = last_wake();
      head_.stopped_since = clock_.now();
    }
    // Many stops are just shorter than a detection time: it does not notice them, and its own
    // silence is easily taken for the workers'.
    const duration_ns timeout = head_options_.heartbeat_timeout;
    const duration_ns stop = dice_.chance(40'000) ? dice_.between(timeout - timeout / 5, timeout)
                                                  : dice_.below(2 * k_second);
    head_.frozen_until = std::max(head_.frozen_until, clock_.now() + stop);
    head_.steady_since = head_.frozen_until;
  });
  moments(5, [this, any_worker] { kill_worker(any_worker()); });
  moments(2, [this, any_worker] {
    const std::size_t w = any_worker();
    workers_[w].touched = true;
    in_worker(w, workers_[w].life, [this, w] { step_worker(w, workers::shut_down{}); });
  });
  moments(3, [this, any_worker] { freeze_worker(any_worker()); });
  moments(3, [this, any_worker] { stick_worker(any_worker()); });
  const auto cut = [this](std::size_t w, time_ns worker_host::*until) {
    worker_host& host = workers_[w];
    if (clock_.now() >= host.cut_down_until) host.cut_down_since = clock_.now();
    host.*until = clock_.now() + dice_.below(2 * k_second);
    host.touched = true;
  };
  moments(2, [cut, any_worker] { cut(any_worker(), &worker_host::cut_up_until); });
  moments(2, [cut, any_worker] { cut(any_worker(), &worker_host::cut_down_until); });
  moments(3, [this, any_worker, any_service] {
    const wire::endpoint_id worker = workers_[any_worker()].endpoint;
    const wire::endpoint_id service = services_[any_service()].endpoint;
    const bool there = dice_.chance(50'000);
    wire_.cut(there ? service : worker, there ? worker : service,
              clock_.now() + dice_.below(2 * k_second));
  });
  moments(4, [this, any_worker, any_service] {
    const wire::endpoint_id worker = workers_[any_worker()].endpoint;
    const std::size_t s = any_service();
    const wire::endpoint_id service = services_[s].endpoint;
    services_[s].broken_at = clock_.now();
    trace([&] { return fmt::format("connection {} {} breaks", worker, service); });
    wire_.break_between(worker, service);
  });
  moments(6, [this, any_worker] { break_link(any_worker()); });
  moments(3, [this, any_service] { kill_service(any_service()); });
  moments(2, [this, freeze, any_service] { freeze(services_[any_service()].frozen_until); });
}

void world::run() {
  clock_.after(dice_.below(200 * k_millisecond), [this] { start_coordinator(); });
  for (std::size_t w = 0; w < workers_.size(); ++w) {
    clock_.after(dice_.below(300 * k_millisecond), [this, w] { start_worker(w); });
  }
  for (std::size_t s = 0; s < services_.size(); ++s) {
    clock_.after(dice_.below(500 * k_millisecond), [this, s] { start_service(s); });
  }
  if (head_options_.lora) clock_.after(dice_.below(k_second), [this] { change_adapters(); });
  plan_faults();
  clock_.run_until(clock_.now() + fault_time_);
  make_quiet();
  clock_.run_until(clock_.now() + k_heal_limit);
  strict_ = true;
  strict_since_ = clock_.now();
  clock_.run_until(clock_.now() + k_strict_time);
  strict_ = false;
  check_converged();
}

// Somebody loads adapters and drops them again, until the faults end.
void world::change_adapters() {
  if (quiet_) return;
  clock_.after(dice_.below(600 * k_millisecond), [this] { change_adapters(); });
  if (!head_.up) return;
  in_coordinator(head_.life, [this] {
    const coordinator::request_token token = ++last_token_;
    const std::string name = fmt::format("adapter-{}", dice_.below(3));
    head_.open_tokens[token] = clock_.now();
    if (dice_.chance(60'000)) {
      step_coordinator(coordinator::load_adapter{token, name, "/adapters/" + name});
    } else {
      step_coordinator(coordinator::drop_adapter{token, name});
    }
  });
}

// The last fault: every process is started, and each link breaks once more. Who is frozen thaws
// within two seconds.
void world::make_quiet() {
  trace([] { return std::string("the last fault"); });
  quiet_ = true;
  rates_ = {};
  wire_.rates = {};
  wire_.heal();
  start_coordinator();
  for (std::size_t w = 0; w < workers_.size(); ++w) {
    start_worker(w);
    workers_[w].cut_up_until = workers_[w].cut_down_until = 0;
    break_link(w);
  }
  for (std::size_t s = 0; s < services_.size(); ++s) {
    start_service(s);
  }
}

void world::check_converged() {
  check(head_.up, "the coordinator is not running");
  const coordinator::tier_view v = head_.core->view(clock_.now());
  check(v.ready, "the tier is not ready: " +
                     (v.not_ready_reasons.empty() ? std::string() : v.not_ready_reasons.front()));
  for (const transport::snapshot_worker& w : v.snapshot->workers) {
    check(w.live && find_worker(w.incarnation) != nullptr,
          fmt::format("worker {} is not in service", w.worker.value));
  }
  check(v.sessions.size() == services_.size(), "sessions are left over, or lack");
  for (std::size_t s = 0; s < services_.size(); ++s) {
    check(services_[s].phase == service_phase::running,
          fmt::format("service {} has no session", s));
    check(services_[s].snapshot == v.snapshot, fmt::format("service {} has an old snapshot", s));
  }
  for (const worker_host& host : workers_) {
    check(host.core->summary().leased, [&] { return host.name + " has no lease"; });
    check(host.sources.size() == v.sessions.size(),
          fmt::format("{} has {} sources; there are {} sessions", host.name, host.sources.size(),
                      v.sessions.size()));
    for (const coordinator::session_view& s : v.sessions) {
      const auto at = host.sources.find(s.source);
      check(at != host.sources.end() && at->second.session == s.session,
            fmt::format("{} lacks a source", host.name));
    }
  }
  std::size_t open_at_most = 0;
  for (const service_host& host : services_) open_at_most += host.micro_batches;
  check(calls_open_ <= open_at_most, "calls are lost");
  if (head_options_.lora) {
    for (const worker_host& host : workers_) {
      check(host.adapters.size() == v.adapters.size(),
            fmt::format("{} holds {} adapters; there are {}", host.name, host.adapters.size(),
                        v.adapters.size()));
    }
  }
  check(calls_ok_ > 0, "no call was served at all");
}

}  // namespace moetier::sim
