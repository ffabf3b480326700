#pragma once
// The coordinator core's state and its rules, grouped by noun, one source file each: the durable
// record (durable.cpp), members (members.cpp), their beats (detection.cpp), the first plan
// (first_plan.cpp), the two phases (two_phases.cpp), sessions (sessions.cpp), attachments
// (attachments.cpp), adapters (adapters.cpp), snapshots (snapshots.cpp). Private to
// coordinator/core. An event changes the state by one of the on() functions; settle() then draws
// what follows from the state as a whole: a plan to make, a decision to write, a snapshot to
// publish, a suspicion to tell. Thread: owner.

#include <array>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "coordinator/core/adapter.hpp"
#include "coordinator/core/core.hpp"
#include "coordinator/core/load_window.hpp"
#include "coordinator/core/member.hpp"
#include "coordinator/core/session.hpp"
#include "coordinator/core/tier_view.hpp"
#include "coordinator/resolution/resolve.hpp"
#include "eplb/placement.hpp"

namespace moetier::coordinator {

inline constexpr generation_number k_first_generation{1};
// What clients hear of it; the log says what the disk, or a worker, said.
inline constexpr const char* k_disk_fails = "the durable record cannot be written";
inline constexpr const char* k_plan_fails =
    "its first plan cannot be made; the operator's log says why";

using resolved_tier = coordinator::resolved;

struct core::state {
  state(core_options given, std::optional<record> stored_record)
      : options(std::move(given)), stored(std::move(stored_record)) {}

  core_options options;
  std::optional<record> stored;  // what start() found
  effects out;
  bool ended = false;
  time_ns step_time = 0;      // of the step that runs
  time_ns woke_at = 0;        // after the last stop of this process
  time_ns patient_until = 0;  // until then links that close because of it may come back

  // --- core.cpp ---
  void start(time_ns now);
  void settle(time_ns now);
  void wake(time_ns now, duration_ns away);
  void discount(time_ns now, duration_ns away);
  void on(const time_passed&, time_ns now);
  void on(const set_log_level& e, time_ns now);
  void on(const shut_down&, time_ns now);
  void stop(bool failed, std::string why, reason cause = reason::internal_error);
  template <class Effect>
  void emit(Effect e) {
    out.emplace_back(std::in_place_type<Effect>, std::move(e));
  }
  control::log_threshold log_level = control::log_threshold::as_configured;  // workers are told
  std::deque<event_view> recent;  // newest first; `age` is when it happened
  void log(log_event::level severity, std::string name, std::string detail, log_subject about = {});

  // --- durable.cpp: the record, one write at a time ---
  record durable;                 // newest value known to be on disk
  std::optional<record> writing;  // handed to the shell, not acknowledged
  bool epoch_wanted = false;      // the group changed, or a plan begins
  bool starting = true;           // the first write is not acknowledged: nothing goes to workers
  std::string disk_trouble;       // why `writing` waits for its next try; empty = it does not
  time_ns write_again_at = 0;
  void write_next();
  void write_again(time_ns now);
  void wait_for_disk(const std::string& trouble, time_ns now);
  void on(const record_written& e, time_ns now);
  void meet_epoch(epoch_number theirs);

  // --- members.cpp ---
  std::map<std::string, member> members;       // by name
  std::map<link_number, std::string> by_link;  // links that said hello and were taken
  std::vector<worker_message> parked;          // hellos that came before the record was durable
  std::deque<incarnation_id> quarantined;      // processes whose weights failed; bounded
  std::uint64_t stale_refused = 0;
  void on(const worker_message& e, time_ns now);
  void on(const worker_link_lost& e, time_ns now);
  void hear(link_number link, const control::hello& m, time_ns now);
  void hear(member& from, const control::leaving& m, time_ns now);
  std::uint64_t checkpoint_digest() const;
  bool is_of_this_tier(const control::hello& m) const;
  const member* peer_of(const control::hello& m) const;
  std::string mismatch_of(const control::hello& m) const;
  void adopt(member& place, link_number link, const control::hello& m, time_ns now);
  void bring_in(member& place, bool resumes, time_ns now);
  void refuse(link_number link, const control::hello& m, control::refused::why cause,
              std::string text);
  void lose(member& gone, loss_cause cause, const std::string& why);
  load_window window;
  void turn_window(time_ns now);
  void quarantine(member& bad, const std::string& text);
  member* member_of(link_number link, incarnation_id incarnation);
  template <class Message>
  void send(const member& to, Message m) {
    if (to.link) emit(send_to_worker{*to.link, control::message(std::move(m))});
  }

  // --- detection.cpp ---
  std::deque<time_ns> silent_losses;  // within the last detection time
  bool suspects_itself = false;
  std::uint64_t beats_without_progress = 0;
  std::uint64_t late_reports = 0;
  std::uint64_t suspicions = 0;
  transport::suspicion suspicion_told;  // what sources were told last
  struct loss {
    loss_view shown;
    time_ns last_beat = 0;
  };
  std::deque<loss> losses;  // the newest few
  std::uint64_t losses_total = 0;
  std::array<std::uint64_t, k_loss_causes.size()> gone_by_cause{};  // in service or not
  histogram detections{k_event_bounds_ns};
  histogram recoveries{k_event_bounds_ns};
  void on(const late_report& e, time_ns now);
  void hear(member& from, const control::heartbeat& m, time_ns now);
  void hear(member& from, const control::load_report& m, time_ns now);
  void detect_silence(time_ns now);
  bool shows_no_progress(const member& from, const control::heartbeat& m) const;
  bool is_late(const member& m, time_ns now) const;
  void tell_suspects();
  void note_loss(const member& gone, loss_cause cause);
  void note_recoveries(time_ns now);

  // --- first_plan.cpp ---
  struct plan_attempt {    // the first plan, until its decision is durable
    epoch_number epoch;    // that PREPARE carries; 0 until it is being written
    bool asked = false;    // PREPARE is sent
    bool decided = false;  // the decision is handed to the disk: no way back
    plan_hash hash;
    eplb::placement placement;
    std::vector<std::uint8_t> bytes;
    std::uint64_t checkpoint_digest = 0;
    std::string resolution;  // canonical report
    std::uint32_t shared_experts = 0;
    std::vector<std::uint64_t> checksums;  // by (layer index, dense position), once decided
    std::uint64_t shared_digest = 0;       // once decided
  };
  std::optional<plan_attempt> attempt;
  std::optional<eplb::placement> plan;  // of durable.generation
  // The plan file's shares by layer and slot, where it is this plan's file; empty layers: even.
  std::optional<std::vector<std::vector<std::uint32_t>>> plan_units;
  std::string plan_problem;  // why the first plan cannot be made with those who are here
  bool plan_failed = false;  // not tried again until the members change
  void consider_first_plan();
  void consider_decision();
  void split(std::string one, std::string two, const std::string& what);
  void no_plan(const error& why);
  void ask_all(time_ns now);
  void drop_attempt();

  // --- resolving.cpp ---
  // What the tier runs: the committed plan's, or the one that is being tried.
  std::shared_ptr<const resolution::resolution_report> resolved;  // null before there is one
  std::vector<prepare_failure> failures;                          // of the plan that is being tried
  expected<resolved_tier> resolve_for(const eplb::placement& placed) const;
  void tell_unused_settings();
  bool gives_exact_rows() const;
  std::string unfit_for(const control::hello& m) const;
  expected<std::shared_ptr<const resolution::environment>> environment_of(
      const control::hello& m) const;
  std::uint32_t shared_experts_held() const noexcept;
  void try_another(const member& from, const std::string& text);

  // --- two_phases.cpp ---
  void ask(member& m, time_ns now);
  void begin_commit(member& m, time_ns now);
  void try_serve(member& m, time_ns now);
  void send_prepare(member& m);
  void send_commit(member& m);
  void resend(time_ns now);
  std::vector<std::uint64_t> reference_of(const member& m) const;
  void hear(member& from, const control::prepared& m, time_ns now);
  void hear(member& from, const control::committed& m, time_ns now);
  void hear(member& from, const control::refused& m, time_ns now);
  void accept_verified(member& m, time_ns now);

  // --- sessions.cpp ---
  std::map<session_id, session> sessions;
  std::deque<source_id> free_sources;      // the one freed longest ago first
  std::uint32_t next_session = 1;          // ids below durable.next_session may be given
  std::vector<open_session> parked_opens;  // wait for session ids to be reserved
  tier_view::refusals refused;
  struct parked_resume {
    resume_session asked;
    time_ns until = 0;
  };
  std::vector<parked_resume> parked_resumes;  // wait for the workers' states after a start
  void on(const open_session& e, time_ns now);
  void on(const resume_session& e, time_ns now);
  void on(const renew_session& e, time_ns now);
  void on(const close_session& e, time_ns now);
  void open_parked(time_ns now);
  void refuse_parked();
  void answer_resumes(time_ns now);
  void lapse_sessions(time_ns now);
  void end_session(session_id id, error why);
  session_grant grant_of(const session& s) const;
  session* find_session(session_id id, incarnation_id incarnation);
  expected<session_request> check(session_request r) const;
  expected<void> check_bill(const session_request& r) const;
  expected<void> admit(session_request& r) const;  // settles its class
  tenant_use use_of(const std::string& tenant) const;
  std::uint64_t rate_of(const session& s) const;
  void answer(request_token token, expected<session_grant> grant);
  void answer_plain(request_token token, expected<void> result);
  void answer_all(const error& why);

  // --- attachments.cpp ---
  void on(const attach_session& e, time_ns now);
  void hear(member& from, const control::source_attached& m, time_ns now);
  void finish_attaches();
  void withdraw_attachment(session& s);
  void fail_attach(session& s, error why);
  void learn_sources(member& from, time_ns now);
  void send_missing_sources(member& to);
  bool has_every_source(const member& m) const;
  void end_sessions_without(const member& m);
  expected<void> check(const session& s, const attach_session& e) const;

  // --- adapters.cpp ---
  std::map<std::uint32_t, adapter> adapters;  // by id
  std::uint32_t next_adapter = 0;
  void on(const load_adapter& e, time_ns now);
  void on(const drop_adapter& e, time_ns now);
  void hear(member& from, const control::adapter_state& m, time_ns now);
  bool runs_adapters() const noexcept;
  adapter* find_adapter(const std::string& name);  // one that is not on its way out
  bool is_held_by_all(std::uint32_t id) const;
  std::vector<std::uint32_t> listed_adapters() const;
  void answer_loads(adapter& a, const error& why);
  void give_up(adapter& a, const error& why);
  void settle_adapters();
  void resend_adapters(time_ns now);
  bool has_settled_adapters(const member& m) const;
  void send_missing_adapters(const member& to);
  void learn_adapters(member& from, time_ns now);
  void answer_adapter_requests(const error& why);

  // --- snapshots.cpp ---
  transport::snapshot_ptr published;
  bool collecting = false;       // after a start with a plan, until the first snapshot
  time_ns collecting_since = 0;  // the durable start, or the first hello after a long silence
  std::uint64_t unreplicated_experts = 0;
  std::uint64_t lost_experts = 0;
  std::vector<std::string> lost_texts;  // the first few, for people
  void publish_if_due(time_ns now);
  bool collected(time_ns now) const;
  bool is_shown_live(const member& m) const;
  std::vector<std::vector<std::uint32_t>> units_of_plan_file();
  transport::snapshot_ptr make_snapshot() const;
  void count_replicas();
  std::vector<std::string> reasons_not_ready() const;  // for the operator
  std::string reason_for_clients() const;
};

}  // namespace moetier::coordinator
