#pragma once
// The worker core's state and its rules, grouped by noun: link (core.cpp), plans (plans.cpp),
// sources (sources.cpp), adapters (adapters.cpp), beats (beats.cpp). Private to workers/core. Every
// command passes obeys() first: it compares incarnation and epoch and is the only place that raises
// the epoch. Thread: owner.

#include <deque>
#include <map>
#include <optional>

#include "workers/core/core.hpp"

namespace moetier::workers {

struct core::state {
  explicit state(core_options given) : options(std::move(given)) {}

  // --- what is known ---
  core_options options;
  bool linked = false;
  bool joined = false;  // welcomed on this link
  worker_id self;
  epoch_number highest;  // R1: only ever rises
  std::uint64_t stale_refused = 0;

  struct plan_in_service {
    generation_number generation;
    plan_hash plan;
    std::uint64_t resolution = 0;  // id
    std::vector<std::uint64_t> checksums;
    std::uint64_t shared_digest = 0;
  };
  struct plan_in_preparation {
    epoch_number epoch;  // of the newest PREPARE for it: what PREPARED answers
    generation_number generation;
    plan_hash plan;
    worker_id self;
    std::uint32_t first_slot = 0;
    std::uint64_t resolution = 0;  // id
    bool loaded = false;
    std::vector<std::uint64_t> checksums;
    std::uint64_t shared_digest = 0;
  };
  std::optional<plan_in_service> serving;
  std::optional<plan_in_preparation> preparing;
  std::optional<plan_in_service> draining;  // at most one older generation is answered for
  std::optional<epoch_number> release_asked;

  struct attached_source {
    control::source_attachment source;
    bool confirmed = false;  // the engine has it
  };
  std::map<source_id, attached_source> sources;
  // By place: who was there last. It does not come back; its rows were dropped, and the banks of
  // its exchanges with them.
  struct detached_source {
    session_id session;
    incarnation_id incarnation;
  };
  std::map<source_id, detached_source> detached;

  struct held_adapter {
    control::held_adapter adapter;
    bool confirmed = false;  // the loader has read it and the engine has it
  };
  std::map<std::uint32_t, held_adapter> adapters;  // by id

  engine_progress progress;
  std::uint64_t beat = 0;
  struct sent_beat {
    std::uint64_t sequence = 0;
    time_ns at = 0;
  };
  std::deque<sent_beat> beats_sent;  // of this link, not answered yet; bounded
  time_ns lease_from = 0;            // when the newest answered beat was sent
  bool leased = false;
  time_ns hello_at = 0;     // when hello was said last
  time_ns beat_at = 0;      // when a beat was sent last
  time_ns heard_at = 0;     // when the coordinator was heard last
  time_ns reported_at = 0;  // when a load report was sent last
  bool load_changed = false;
  control::log_threshold log_level = control::log_threshold::as_configured;  // as last told

  bool leaving = false;
  bool drain_asked = false;
  bool ended = false;
  time_ns leaving_at = 0;

  effects out;

  // --- link (core.cpp) ---
  void on(const link_up&, time_ns now);
  void on(const link_lost&, time_ns now);
  void on(const coordinator_message& e, time_ns now);
  void on(const shut_down&, time_ns now);
  void on(const engine_drained&, time_ns now);
  void obey(const control::welcome& m);
  void obey(const control::refused& m);
  void say_hello(time_ns now);
  bool obeys(epoch_number epoch, generation_number generation);
  bool is_own(incarnation_id incarnation);
  void stop(bool failed, std::string why);

  // --- plans (plans.cpp) ---
  void obey(const control::prepare& m);
  void obey(const control::abort_plan& m);
  void obey(const control::commit& m);
  void obey(const control::release& m);
  void on(const plan_loaded& e, time_ns now);
  void on(const plan_load_failed& e, time_ns now);
  void on(const pages_released& e, time_ns now);
  void forget_preparation();
  void answer_prepared();
  std::vector<control::held_generation> held() const;

  // --- sources (sources.cpp) ---
  void obey(const control::attach_source& m);
  void obey(const control::detach_source& m);
  void on(const source_attach_done& e, time_ns now);
  void answer_attached(const control::source_attachment& s, bool accepted, std::string text,
                       bool gone = false);
  void forget_source(const attached_source& held);
  bool was_detached(const control::source_attachment& s) const;
  std::vector<control::source_attachment> confirmed_sources() const;

  // --- adapters (adapters.cpp) ---
  void obey(const control::load_adapter& m);
  void obey(const control::drop_adapter& m);
  void on(const adapter_load_done& e, time_ns now);
  void answer_adapter(std::uint32_t adapter, bool loaded, std::string text);
  std::vector<control::held_adapter> confirmed_adapters() const;

  // --- beats (beats.cpp) ---
  void obey(const control::heartbeat_answer& m);
  void obey(const control::probe& m);
  void say_beat(time_ns now);
  void judge_lease(time_ns now);
  void on(const time_passed&, time_ns now);
  void on(const engine_progress& e, time_ns now);

  // What only a worker says; a coordinator that sends it is ignored.
  template <class Other>
  void obey(const Other&) {
    ++stale_refused;
  }

  // --- words to the shell ---
  template <class Effect>
  void emit(Effect e) {
    out.emplace_back(std::in_place_type<Effect>, std::move(e));
  }
  template <class Message>
  void say(Message m) {
    if (linked) emit(send{control::message(std::move(m))});
  }
  void refuse(control::refused::why cause, generation_number generation, std::string text);
  void log(log_event::level severity, std::string name, std::string detail);
};

}  // namespace moetier::workers
