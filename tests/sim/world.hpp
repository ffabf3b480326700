#pragma once
// The simulated tier: one coordinator, its workers and some attention services on one queue of
// virtual time, driven by one seed. The product's own code inside: both cores, the source half
// (transport/client/source, on a fiber of its service) and the protocol of the data plane
// (transport/exchange). What is around them (links, wire, disk, engines, weight stores) is a model
// that may fail in every way that its counterpart can. A broken rule throws `violation`.
// Thread: owner.

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "coordinator/core/core.hpp"
#include "schemas/control/codec.hpp"
#include "tests/sim/dice.hpp"
#include "tests/sim/fiber.hpp"
#include "tests/sim/schedule.hpp"
#include "tests/sim/wire.hpp"
#include "transport/client/source/source_session.hpp"
#include "workers/core/core.hpp"

namespace moetier::sim {

struct violation : std::runtime_error {
  using std::runtime_error::runtime_error;
};

inline constexpr std::uint32_t k_tokens_max = 8;  // of a call

// What a seed decides about a run before it starts. Chances in parts of 100,000.
struct fault_rates {
  std::uint32_t lose = 0;
  std::uint32_t repeat = 0;
  std::uint32_t reorder = 0;
  std::uint32_t late_copy =
      0;                     // a copy reaches a worker much later, over whatever link it has then
  std::uint32_t damage = 0;  // a byte of a frame changes
  std::uint32_t load_fails = 0;
  std::uint32_t load_spoils = 0;  // wrong bytes, and a checksum that says so
  std::uint32_t attach_refused = 0;
  std::uint32_t disk_fails = 0;
  std::uint32_t crash_in_step = 0;  // the coordinator dies between two effects of one step
  std::uint32_t half_open = 0;      // a closed link's end is not seen by the coordinator
  std::uint32_t adapter_fails = 0;

  // What may make the coordinator do without a worker that did nothing wrong itself.
  bool spare_the_control_links() const {
    return lose + damage + repeat + reorder + late_copy + half_open + attach_refused + load_fails +
               load_spoils ==
           0;
  }
};

class world final {
 public:
  explicit world(std::uint64_t seed, bool traced = false);
  ~world();
  void run();
  std::uint64_t events() const noexcept { return clock_.done(); }
  std::uint64_t calls_ended_well() const noexcept { return calls_ok_; }
  std::uint64_t calls_ended_ill() const noexcept { return calls_failed_; }
  std::uint64_t replays() const noexcept { return replays_; }

 private:
  // Before all that uses them to its end.
  schedule clock_;
  dice dice_;
  wire wire_{clock_, dice_};

  // --- a process (world.cpp): what reaches it while it is frozen waits for it, in order ---
  struct process {
    struct waiting_event {
      std::uint64_t life = 0;
      std::function<void()> what;
    };
    std::uint64_t life = 0;
    bool up = false;
    time_ns frozen_until = 0;
    std::deque<waiting_event> waiting;
  };
  void in_process(process& p, std::uint64_t life, std::function<void()> what);
  void thaw_in_time(process& p);

  // --- links (links.cpp): frames between the cores ---
  struct link {
    coordinator::link_number number = 0;
    std::size_t worker = 0;
    std::uint64_t worker_life = 0;
    std::uint64_t coordinator_life = 0;
    bool open_here = true;   // as the worker's shell sees it
    bool open_there = true;  // as the coordinator's shell sees it
    time_ns last_here = 0;   // frames arrive in order unless a fault says otherwise
    time_ns last_there = 0;
    control::assembler here;
    control::assembler there;
  };
  std::map<coordinator::link_number, link> links_;
  coordinator::link_number last_link_ = 0;
  void connect(std::size_t worker);
  void to_coordinator(link& l, const control::message& m);
  void to_worker(link& l, const control::message& m);
  void close_from_worker(coordinator::link_number number, bool seen);
  void break_link(std::size_t worker);
  void close_from_coordinator(coordinator::link_number number);
  std::vector<control::frame> damaged(std::vector<control::frame> frames);
  time_ns arrival(time_ns& last);

  // --- coordinator (coordinator_host.cpp, coordinator_checks.cpp) ---
  struct coordinator_host : process {
    std::unique_ptr<coordinator::core> core;
    time_ns steady_since = 0;  // when it began or went on
    time_ns woke_at = 0;       // after an earlier stop that was long enough to be noticed
    std::map<incarnation_id, time_ns> heard;   // last, with nothing to compute
    std::map<incarnation_id, time_ns> joined;  // when its last hello came
    time_ns started = 0;
    // Workers that were sent COMMIT and are not routed to yet: since when.
    std::map<incarnation_id, time_ns> committing;
    std::set<incarnation_id> gone_sources;             // a worker said that it dropped their rows
    std::map<session_id, incarnation_id> attached_as;  // as workers were told, in any life
    time_ns stopped_since = 0;                         // when it was frozen before that; 0 = never
    std::optional<coordinator::record> disk;
    std::optional<coordinator::write_record> writing;
    bool disk_failed = false;  // the last write, which is tried again
    time_ns disk_since = 0;    // a write succeeded where the one before it failed
    std::map<coordinator::request_token, time_ns> open_tokens;
    std::map<incarnation_id, coordinator::link_number> seen;  // processes whose link it knows
    transport::snapshot_ptr newest;
    transport::suspicion_ptr suspicion;
  };
  coordinator_host head_;
  coordinator::core_options head_options_;
  transport::snapshot_ptr last_published_;                    // over all lives
  std::map<session_id, coordinator::session_grant> granted_;  // without their snapshots
  void start_coordinator();
  void kill_coordinator();
  void coordinator_beat(std::uint64_t life);
  void step_coordinator(const coordinator::event& e);
  bool apply(const coordinator::effect& e);
  void finish_write(std::uint64_t life, bool done);
  void in_coordinator(std::uint64_t life, std::function<void()> what);
  void check_published(const transport::routing_snapshot& s);
  void check_newly_live(const transport::routing_snapshot& s);
  time_ns last_wake() const;
  bool may_be_awaited(const transport::snapshot_worker& shown) const;
  void check_attached(session_id session);
  void check_left_out(const transport::routing_snapshot& s);
  void check_lapsed(const coordinator::session_ended& ended);
  void check_given_up(const coordinator::session_ended& ended);
  void check_detection();
  void check_tenant(const std::string& name);
  void check_granted_again(const coordinator::session_grant& grant);
  void check_coordinator();

  // --- workers (worker_host.cpp) ---
  struct attached {
    session_id session;
    incarnation_id incarnation;
  };
  struct held_plan {
    generation_number generation;
    plan_hash plan;
    std::uint32_t first_slot = 0;
    std::uint64_t resolution = 0;
    std::vector<std::vector<std::int32_t>> pages;  // [layer index][local slot]: the expert there
  };
  struct worker_host : process {
    std::unique_ptr<workers::core> core;
    std::string name;
    incarnation_id incarnation;
    bool ending = false;
    time_ns stuck_until = 0;
    std::optional<coordinator::link_number> link;
    std::map<plan_hash, std::uint64_t> loading;  // which load of it counts
    std::map<plan_hash, held_plan> loaded;
    std::optional<held_plan> serving;
    std::map<source_id, attached> sources;
    std::map<std::uint32_t, std::string> adapters;  // id -> path, as the engine computes with it
    time_ns loader_until = 0;                       // adapters are read and dropped one by one
    // --- data plane and engine (engine_model.cpp) ---
    wire::endpoint_id endpoint = 0;
    std::unique_ptr<transport::WorkerHalf> half;
    std::deque<transport::arrival> queue;
    bool computing = false;
    bool turn_due = false;
    time_ns busy_since = 0;
    time_ns cut_up_until = 0;    // what it says to the coordinator is lost
    time_ns cut_down_until = 0;  // what the coordinator says to it is lost
    time_ns cut_down_since = 0;
    time_ns still_since = 0;  // when it began to be frozen or stuck, or one after the other
    time_ns frozen_since = 0;
    time_ns stuck_since = 0;
    bool was_still = false;  // ever
    bool touched = false;    // another fault befell this process: it may be left out for a while
    std::uint64_t tick = 0;
    std::uint64_t rows = 0;
    epoch_number epoch;  // the highest seen so far
  };
  std::vector<worker_host> workers_;
  std::uint32_t slots_wished_ = 0;
  void start_worker(std::size_t w);
  void kill_worker(std::size_t w);
  void worker_beat(std::size_t w, std::uint64_t life);
  void step_worker(std::size_t w, const workers::event& e);
  void apply(std::size_t w, workers::effect& e);
  void load(std::size_t w, const workers::load_plan& e);
  void in_worker(std::size_t w, std::uint64_t life, std::function<void()> what);
  void freeze_worker(std::size_t w);
  void stick_worker(std::size_t w);
  void note_standstill(worker_host& host);
  void engine_turn(std::size_t w, std::uint64_t life);
  void hear_unreached(std::size_t w, std::uint64_t life);
  void compute_next(std::size_t w, std::uint64_t life);
  void serve(std::size_t w, const transport::arrival& work);
  void forget_arrivals(worker_host& host, source_id source);
  void reconnect_later(std::size_t w);
  worker_host* find_worker(incarnation_id incarnation);

  // --- attention services (service_host.cpp) ---
  enum class service_phase : std::uint8_t { idle, opening, attaching, resuming, running };
  struct service_host : process {
    std::uint64_t connected_life = 0;  // of the coordinator, 0 = not connected
    time_ns connected_at = 0;
    time_ns told_at = 0;       // when the coordinator's last word reaches it
    time_ns snapshot_at = 0;   // when it learnt of its newest snapshot
    time_ns suspicion_at = 0;  // and of its newest suspicion
    time_ns broken_at = 0;     // when a connection of it to a worker broke
    service_phase phase = service_phase::idle;
    coordinator::request_token awaited = 0;
    incarnation_id incarnation;
    std::optional<session_id> session;
    source_id source;
    transport::snapshot_ptr snapshot;
    transport::suspicion_ptr suspicion;
    time_ns renew_at = 0;
    time_ns try_at = 0;
    std::uint32_t micro_batches = 1;
    // --- source half (service_calls.cpp); the fiber goes before what it uses ---
    wire::endpoint_id endpoint = 0;
    std::unique_ptr<client::source_session> source_half;
    std::unique_ptr<fiber> caller;
  };
  std::vector<service_host> services_;
  std::uint64_t last_token_ = 0;
  std::uint64_t calls_ok_ = 0;
  std::uint64_t calls_failed_ = 0;
  std::uint64_t calls_open_ = 0;
  std::uint64_t replays_ = 0;
  void start_service(std::size_t s);
  void kill_service(std::size_t s);
  void service_turn(std::size_t s, std::uint64_t life);
  void ask(std::size_t s, coordinator::event e, coordinator::request_token token);
  void in_service(std::size_t s, std::uint64_t life, std::function<void()> what);
  void answer(coordinator::request_token token, const expected<coordinator::session_grant>& grant);
  void answer(coordinator::request_token token, const expected<void>& result);
  void session_over(std::size_t s);
  void tell_snapshot(std::size_t s, transport::snapshot_ptr snapshot);
  void tell_suspicion(std::size_t s, transport::suspicion_ptr suspicion);
  void open_source(std::size_t s);
  void drop_source(std::size_t s, bool killed);
  void begin_calls(std::size_t s);
  void wake_caller(std::size_t s, std::uint64_t life);
  void sleep_in_call(std::size_t s, duration_ns how_long);
  void call_loop(std::size_t s);
  struct call;
  expected<void> one_step(std::size_t s, bool replay, std::vector<call>& calls);
  void judge(std::size_t s, const call& c, const expected<void>& ended);
  void judge_timeout(std::size_t s, const call& c);
  duration_ns hop();
  time_ns told(std::size_t s);

  // --- adapters (world.cpp): somebody loads and drops them ---
  void change_adapters();

  // --- script and checks (world.cpp) ---
  void plan_faults();
  void make_quiet();
  void check_converged();
  void check(bool fact, const std::string& text);
  // The same where the text costs something: it is made only when the fact is none.
  template <class Text>
  requires std::is_invocable_v<Text>
  void check(bool fact, Text text) {
    if (!fact) check(false, std::string(text()));
  }
  // `text` is made only when the run is traced.
  template <class Text>
  void trace(Text text) {
    if (traced_) print_trace(text());
  }
  void print_trace(const std::string& text) const;

  bool traced_ = false;
  fault_rates rates_;
  duration_ns fault_time_ = 0;
  bool quiet_ = false;
  bool strict_ = false;
  time_ns strict_since_ = 0;
  bool rates_were_kind_ = false;  // nothing but what befell it can cost a worker its place
};

}  // namespace moetier::sim
