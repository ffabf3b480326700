#pragma once
// A bench for the coordinator's core: a disk that obeys the compare-and-set, workers that answer
// (or are told not to), and everything the core said, in order. Thread: owner.

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "coordinator/core/core.hpp"
#include "schemas/base/mix.hpp"
#include "tests/schemas/resolution/toy_environment.hpp"

namespace moetier::coordinator {

inline model_description small_model(std::uint32_t experts = 4) {
  model_description m;
  m.model_type = "qwen3_moe";
  m.hidden_size = 16;
  m.intermediate_size = 8;
  m.experts = experts;
  m.top_k = 2;
  m.layers_total = 2;
  m.moe_layers = {layer_id(0), layer_id(1)};
  m.routing.method = routing_method::renormalize;
  m.router_width = 16;
  m.fingerprint = 0xf00d;
  return m;
}

// The checksum of an expert's bytes: the same wherever it lies.
inline std::uint64_t checksum_of(std::size_t layer_index, std::int32_t expert) {
  return expert < 0 ? 0 : mix(layer_index * 4096 + static_cast<std::uint64_t>(expert)) | 1;
}

inline std::vector<std::uint64_t> checksums_of(const eplb::placement& p, std::string_view name) {
  std::vector<std::uint64_t> all;
  for (std::size_t layer = 0; layer < p.layers().size(); ++layer) {
    for (std::size_t s = 0; s < p.spans().size(); ++s) {
      if (p.spans()[s].name != name) continue;
      for (std::uint32_t i = 0; i < p.spans()[s].slots; ++i) {
        all.push_back(checksum_of(layer, p.layers()[layer].experts[p.first_dense(s) + i]));
      }
    }
  }
  return all;
}

inline eplb::placement placement_of(const std::vector<std::uint8_t>& bytes) {
  return *eplb::placement::from_canonical(std::as_bytes(std::span(bytes)));
}

class bench {
 public:
  // One worker process as the coordinator sees it.
  struct process {
    control::hello hello;
    link_number link = 0;
    bool loads = true;    // answers PREPARE
    bool commits = true;  // answers COMMIT
    bool attaches = true;
    bool takes_adapters = true;   // answers LoadAdapter
    std::string adapter_problem;  // with this, where not empty
    bool beats = true;
    std::uint64_t sequence = 0;
    std::uint64_t tick = 0;
    std::uint64_t oldest_batch_ns = 0;
    std::uint64_t spoil = 0;  // changes its checksums
    std::uint64_t spoil_shared = 0;
    std::vector<control::message> heard;
    bool cut = false;
  };

  explicit bench(std::uint32_t workers = 2) {
    options.model = small_model();
    options.workers_expected = workers;
    options.node = 99;
  }

  void start() {
    core_ = std::make_unique<core>(options, disk);
    run(core_->start(now));
  }
  // kill -9 and start again: links are gone, the disk stays.
  void restart() {
    for (auto& [name, p] : processes) p.link = 0;
    pending.reset();
    start();
  }

  process& add(const std::string& name, std::uint64_t incarnation, std::uint32_t slots = 4) {
    process p;
    p.hello.name = name;
    p.hello.incarnation = incarnation_id(incarnation);
    p.hello.node = incarnation;
    p.hello.model_fingerprint = options.model.fingerprint;
    p.hello.checkpoint_digest = 0xd1;
    p.hello.slots = slots;
    p.hello.environment = toy::environment_document();
    p.hello.carrier = "in_process";
    p.hello.address = {1, 2, 3};
    p.hello.heartbeat_interval_ns = options.heartbeat_interval;
    p.hello.heartbeat_timeout_ns = options.heartbeat_timeout;
    return processes[name] = p;
  }
  void connect(const std::string& name) {
    process& p = processes.at(name);
    p.link = ++last_link;
    p.cut = false;
    step(worker_message{p.link, p.hello});
  }
  void join(const std::string& name, std::uint64_t incarnation, std::uint32_t slots = 4) {
    add(name, incarnation, slots);
    connect(name);
  }
  void lose_link(const std::string& name) {
    step(worker_link_lost{std::exchange(processes.at(name).link, 0)});
  }
  // A tier of two workers, a and b, each with all four experts, in service.
  void serve() {
    start();
    join("a", 11);
    join("b", 12);
  }

  void step(const event& e) { run(core_->step(e, now)); }

  // Lets time go by in heartbeat intervals; processes that are linked beat.
  void wait(duration_ns how_long) {
    for (const time_ns end = now + how_long; now < end;) {
      now += options.heartbeat_interval;
      for (auto& [name, p] : processes) {
        if (p.link == 0 || !p.beats) continue;
        control::heartbeat beat;
        beat.incarnation = p.hello.incarnation;
        beat.sequence = ++p.sequence;
        beat.engine_tick = p.oldest_batch_ns == 0 ? ++p.tick : p.tick;
        beat.oldest_batch_ns = p.oldest_batch_ns;
        step(worker_message{p.link, beat});
      }
      step(time_passed{});
    }
  }

  void say(const std::string& name, control::message m) {
    step(worker_message{processes.at(name).link, std::move(m)});
  }

  tier_view view() const { return core_->view(now); }
  transport::snapshot_ptr snapshot() const { return view().snapshot; }
  bool is_live(std::size_t span) const { return snapshot()->workers.at(span).live; }

  // All effects of a kind since the last forget().
  template <class Effect>
  std::vector<Effect> all() const {
    std::vector<Effect> found;
    for (const effect& e : seen) {
      if (const auto* f = std::get_if<Effect>(&e)) found.push_back(*f);
    }
    return found;
  }
  template <class Message>
  std::vector<Message> heard_by(const std::string& name) const {
    std::vector<Message> found;
    for (const control::message& m : processes.at(name).heard) {
      if (const auto* f = std::get_if<Message>(&m)) found.push_back(*f);
    }
    return found;
  }
  bool logged(std::string_view name) const {
    for (const log_event& l : all<log_event>()) {
      if (l.event == name) return true;
    }
    return false;
  }
  void forget() {
    seen.clear();
    for (auto& [name, p] : processes) p.heard.clear();
  }

  // --- sessions ---
  session_grant open(request_token token = 1, session_request request = {}) {
    request.incarnation = incarnation_id(7000 + token);
    step(open_session{token, request});
    return *all<answer_session>().back().grant;
  }
  attach_session attach_of(const session_grant& g, request_token token) const {
    attach_session e;
    e.token = token;
    e.session = g.session;
    e.incarnation = incarnation_id(7000 + g.session.value);
    e.shape = {.rows_max = 16,
               .hidden_stride = 64,
               .top_k = 2,
               .return_stride = 64,
               .return_rows_max = 32,
               .banks = 2};
    e.address = {std::byte{5}};
    return e;
  }

  core_options options;
  std::optional<record> disk;
  bool disk_answers = true;  // false: writes stay pending until acknowledge()
  std::optional<write_record> pending;
  std::map<std::string, process> processes;
  std::vector<effect> seen;
  time_ns now = 1000 * k_second;
  link_number last_link = 0;

  // The disk does what was asked last, and says so; with a trouble it did not.
  void acknowledge(bool done = true, std::string trouble = {}) {
    const write_record w = *std::exchange(pending, std::nullopt);
    if (done) disk = w.value;
    step(record_written{w.value.epoch, done, std::move(trouble)});
  }

 private:
  void run(effects more) {
    for (effect& e : more) {
      seen.push_back(e);
      if (auto* w = std::get_if<write_record>(&e)) {
        const epoch_number held = disk ? disk->epoch : epoch_number();
        pending = *w;
        if (disk_answers) acknowledge(held == w->expected);
      } else if (auto* m = std::get_if<send_to_worker>(&e)) {
        deliver(*m);
      } else if (auto* c = std::get_if<cut_worker_link>(&e)) {
        for (auto& [name, p] : processes) {
          if (p.link != c->link) continue;
          p.link = 0;
          p.cut = true;
        }
      }
    }
  }

  void deliver(const send_to_worker& m) {
    for (auto& [name, p] : processes) {
      if (p.link != m.link) continue;
      p.heard.push_back(m.body);
      if (const auto* prepare = std::get_if<control::prepare>(&m.body); prepare && p.loads) {
        auto sums = checksums_of(placement_of(prepare->placement), name);
        if (p.spoil != 0) sums.front() += p.spoil;
        p.hello.held_checksums = sums;
        const std::uint64_t shared = prepare->shared_experts == 0 ? 0 : 0x5a + p.spoil_shared;
        p.hello.held_shared_digest = shared;
        const auto& report = prepare->resolution;
        const auto read = resolution::read_report(
            {reinterpret_cast<const char*>(report.data()), report.size()}, "the report");
        p.hello.resolution = read ? read->resolution_id : 0;
        return say(name, control::prepared{prepare->epoch, prepare->generation, prepare->plan,
                                           p.hello.incarnation, sums, shared});
      }
      if (const auto* commit = std::get_if<control::commit>(&m.body); commit && p.commits) {
        p.hello.held = {{commit->generation, commit->plan, control::generation_state::serving}};
        return say(name, control::committed{commit->epoch, commit->generation, commit->plan,
                                            p.hello.incarnation});
      }
      if (const auto* attach = std::get_if<control::attach_source>(&m.body); attach && p.attaches) {
        p.hello.sources.push_back(attach->source);
        return say(name, control::source_attached{p.hello.incarnation, attach->source.source,
                                                  attach->source.incarnation, true, ""});
      }
      if (const auto* load = std::get_if<control::load_adapter>(&m.body);
          load && p.takes_adapters) {
        const bool loaded = p.adapter_problem.empty();
        if (loaded) p.hello.adapters.push_back(load->adapter);
        return say(name, control::adapter_state{p.hello.incarnation, load->adapter.adapter, loaded,
                                                p.adapter_problem});
      }
      if (const auto* drop = std::get_if<control::drop_adapter>(&m.body)) {
        std::erase_if(p.hello.adapters,
                      [&](const auto& held) { return held.adapter == drop->adapter; });
      }
      return;
    }
  }

  std::unique_ptr<core> core_;
};

inline std::string refusal_of(const bench& b, const std::string& name) {
  const auto all = b.heard_by<control::refused>(name);
  return all.empty() ? "not refused" : all.back().text;
}

}  // namespace moetier::coordinator
