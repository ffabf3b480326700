#include "actors/up/supervisor.hpp"

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include <poll.h>
#include <fmt/core.h>

#include "actors/cli/exit_code.hpp"
#include "actors/config/device_name.hpp"
#include "actors/config/endpoint.hpp"
#include "actors/process/service_notice.hpp"
#include "actors/http/http_get.hpp"
#include "actors/up/child_process.hpp"
#include "actors/up/given_up_workers.hpp"
#include "actors/roles/text_file.hpp"
#include "actors/up/restart_ledger.hpp"
#include "actors/up/state_folder.hpp"
#include "eplb/plan_file.hpp"
#include "workers/device/worker_device.hpp"

namespace moetier::up {
namespace {

constexpr duration_ns k_turn = 50 * k_millisecond;
// What children get beyond drain.timeout: with its default, SIGTERM to exit is within 5 s.
constexpr duration_ns k_teardown_limit = 800 * k_millisecond;
constexpr duration_ns k_coordinator_first = 2 * k_second;  // of that, before the workers
constexpr duration_ns k_ask_limit = 500 * k_millisecond;
constexpr duration_ns k_look_interval = k_second;  // at a tier that lacks workers

// Codes of an end that another start would meet again.
bool is_final(int code) noexcept {
  using cli::exit_code;
  return code == static_cast<int>(exit_code::usage) ||
         code == static_cast<int>(exit_code::refused) ||
         code == static_cast<int>(exit_code::bad_input);
}

// A place among the children: what runs there now and how it is started.
struct place {
  std::string name;
  std::vector<std::string> arguments;
  restart_ledger ledger;
  std::unique_ptr<child_process> child;
  std::optional<roles::listening> where;  // of the newest process that told
  bool told = false;                      // the running one has
};

class supervisor final {
 public:
  supervisor(const config::up_settings& given, const up_wish& wish, event_log& log,
             stop_signal& stop)
      : given_(given), settings_(given.tier.values), wish_(wish), log_(log), stop_(stop) {}

  expected<int> run(const std::function<void(const up_state&)>& on_ready) {
    if (auto done = prepare(); !done) return tl::unexpected(done.error());
    places_.push_back(coordinator_place());
    if (!start(places_.front())) return failed_;
    // A renewed certificate is the coordinator's business.
    stop_.on_hangup([this] {
      if (const pid_t pid = coordinator_pid_.load(); pid > 0) ::kill(pid, SIGHUP);
    });
    while (!stop_.stopping() && failed_ == 0) {
      watch();
      if (places_.size() == 1 && places_.front().told) add_workers();
      if (!said_ready_ && all_told() && is_ready()) {
        said_ready_ = true;
        on_ready(state());
        manager_.readiness(true, {});
      }
      if (given_up_.any()) look_at_the_rest();
    }
    stop_.on_hangup({});
    manager_.stopping();
    end_all();
    return failed_;
  }

 private:
  expected<void> prepare() {
    if (settings_.model.path.empty()) {
      return fail(reason::config_invalid, "model.path", "not set", "a model directory");
    }
    workers_ = settings_.coordinator.workers;
    if (!settings_.coordinator.placement.empty()) {
      const auto text = roles::read_text(settings_.coordinator.placement);
      if (!text) return tl::unexpected(text.error());
      const auto slots = eplb::slots_per_worker_of(*text, settings_.coordinator.placement);
      if (!slots) return tl::unexpected(slots.error());
      const auto planned = config::workers_of_plan(given_, slots->size());
      if (!planned) return tl::unexpected(planned.error());
      workers_ = *planned;
    }
    for (std::uint32_t i = 0; i < workers_; ++i) {
      auto listen = config::worker_http_listen(settings_, i);
      if (!listen) return tl::unexpected(listen.error());
      worker_http_.push_back(std::move(*listen));
    }
    if (auto dealt = deal_devices(); !dealt) return dealt;
    for (const std::string& what : given_.ignored) log_.warn("setting_ignored", {{"what", what}});
    state_path_ = settings_.coordinator.state_dir;
    if (!state_path_.empty()) return {};
    auto made = state_folder::make(std::filesystem::temp_directory_path());
    if (!made) return tl::unexpected(made.error());
    own_state_ = std::move(*made);
    state_path_ = own_state_->path();
    return {};
  }

  // Each worker's device; all of the processor's are alike.
  expected<void> deal_devices() {
    const auto wish = config::parse_device(settings_.worker.device);
    devices_.assign(workers_, settings_.worker.device);
    if (!wish || !wish->cuda) return {};
    const auto count = workers::count_devices(settings_.worker.device);
    if (!count) return tl::unexpected(count.error());
    for (std::uint32_t i = 0; i < workers_; ++i)
      devices_[i] = config::device_of_worker(*wish, i, *count);
    const std::uint32_t used = wish->ordinal < 0 ? *count : 1;
    if (workers_ > used) log_.info("devices_shared", {{"workers", workers_}, {"devices", used}});
    return {};
  }

  std::vector<std::string> base(const char* command) const {
    std::vector<std::string> a{"moetier", command};
    if (!wish_.config_file.empty()) a.insert(a.end(), {"--config", wish_.config_file});
    a.insert(a.end(), {"--log-level", settings_.log.level, "--model", settings_.model.path});
    a.insert(a.end(), wish_.shared_arguments.begin(), wish_.shared_arguments.end());
    return a;
  }

  place coordinator_place() const {
    auto a = base("coordinator");
    const auto add = [&a](std::string flag, std::string value) {
      a.push_back(std::move(flag));
      a.push_back(std::move(value));
    };
    add("--workers", std::to_string(workers_));
    if (!settings_.coordinator.placement.empty()) {
      add("--placement", settings_.coordinator.placement);
    }
    add("--state-dir", state_path_);
    add("--set", "coordinator.when_infeasible=" + settings_.coordinator.when_infeasible);
    add("--rpc-listen", settings_.coordinator.rpc_listen);
    add("--admin-socket", settings_.coordinator.admin_socket);
    add("--control-listen", settings_.coordinator.control_listen);
    add("--http-listen", settings_.http.listen);
    return {"coordinator", std::move(a), restart_ledger(settings_.restart.budget),
            nullptr,       {},           false};
  }

  place worker_place(std::uint32_t number) const {
    auto a = base("worker");
    const std::string name = fmt::format("worker@{}", number);
    a.insert(a.end(), {"--name", name, "--coordinator", places_.front().where->control,
                       "--http-listen", worker_http_[number], "--device", devices_[number]});
    return {name, std::move(a), restart_ledger(settings_.restart.budget), nullptr, {}, false};
  }

  void add_workers() {
    for (std::uint32_t i = 0; i < workers_; ++i) {
      places_.push_back(worker_place(i));
      if (!start(places_.back())) return;
    }
  }

  bool start(place& p) {
    p.told = false;
    auto child = child_process::start(p.arguments);
    if (!child) {
      log_.error("child_not_started", {{"name", p.name}, {"why", child.error().text}});
      failed_ = 70;
      return false;
    }
    p.child = std::move(*child);
    if (&p == &places_.front()) coordinator_pid_.store(p.child->pid());
    log_.info("child_started",
              {{"name", p.name}, {"child_pid", static_cast<std::uint64_t>(p.child->pid())}});
    return true;
  }

  // Sleeps until something happens, then looks at every child.
  void watch() {
    std::vector<pollfd> fds{{stop_.descriptor(), POLLIN, 0}};
    for (const place& p : places_) {
      if (!p.child) continue;
      fds.push_back({p.child->exit_descriptor(), POLLIN, 0});
      if (p.child->output_descriptor() >= 0) {
        fds.push_back({p.child->output_descriptor(), POLLIN, 0});
      }
    }
    ::poll(fds.data(), fds.size(), static_cast<int>(turn() / k_millisecond));
    for (place& p : places_) {
      if (!p.child) continue;
      hear(p);
      if (const auto code = p.child->take_exit(); code && !stop_.stopping()) ended(p, *code);
    }
  }

  // Before it is ready it asks often; afterwards children and signals wake it, and lost workers.
  duration_ns turn() const {
    if (given_up_.any()) return k_look_interval;
    return said_ready_ ? 3600 * k_second : k_turn;
  }

  void hear(place& p) {
    while (auto line = p.child->take_line()) {
      const auto where = roles::listening_from(*line);
      if (!where) continue;
      if (!p.where) pin_ports(p, *where);
      p.where = where;
      p.told = true;
    }
  }

  // A restarted child listens where the first one did: others have been told.
  static void pin_ports(place& p, const roles::listening& where) {
    for (std::size_t i = 0; i + 1 < p.arguments.size(); ++i) {
      if (p.arguments[i] == "--rpc-listen") p.arguments[i + 1] = where.rpc;
      if (p.arguments[i] == "--control-listen") p.arguments[i + 1] = where.control;
      if (p.arguments[i] == "--http-listen" && p.name == "coordinator") {
        p.arguments[i + 1] = where.http;
      }
    }
  }

  void ended(place& p, int code) {
    log_.warn("child_ended", {{"name", p.name}, {"code", static_cast<std::uint64_t>(code)}});
    // What has never listened will not at a second try, and what settings, plan or model forbid
    // they forbid again: its code says why.
    if (!p.where || is_final(code)) return give_up(p, code == 0 ? 1 : code);
    if (!p.ledger.take(monotonic_now())) {
      log_.error("restart_budget_spent",
                 {{"name", p.name}, {"budget", config::budget_text(settings_.restart.budget)}});
      return give_up(p, 1);
    }
    start(p);
  }

  // Nothing goes without the coordinator; a tier that never was ready misses every worker.
  void give_up(place& p, int code) {
    if (&p == &places_.front() || !said_ready_) {
      failed_ = code;
      return;
    }
    log_.error("worker_given_up",
               {{"name", p.name}, {"code", static_cast<std::uint64_t>(code)}});
    p.child.reset();
    given_up_.add(code);
  }

  void look_at_the_rest() {
    const bool is_serving = is_ready();
    manager_.readiness(is_serving, {"workers are given up"});
    const auto code =
        given_up_.verdict(monotonic_now(), workers_, is_serving || is_somebody_coming());
    if (!code) return;
    log_.error("tier_given_up", {{"code", static_cast<std::uint64_t>(*code)}});
    failed_ = *code;
  }

  bool all_told() const {
    if (places_.size() != 1 + std::size_t{workers_}) return false;
    for (const place& p : places_) {
      if (!p.told) return false;
    }
    return true;
  }

  bool is_ready() const { return says_ready(places_.front()); }

  static bool says_ready(const place& p) {
    const auto at = config::parse_endpoint(p.where->http);
    const auto answer = at ? http::http_get(*at, "/readyz", k_ask_limit) : std::nullopt;
    return answer && answer->code == 200;
  }

  // A child that starts, or a worker that loads what it is to serve.
  bool is_somebody_coming() const {
    return std::any_of(places_.begin(), places_.end(), [this](const place& p) {
      if (!p.child) return false;
      return !p.told || (&p != &places_.front() && !says_ready(p));
    });
  }

  up_state state() const {
    up_state s{.coordinator = *places_.front().where, .workers = {}};
    for (std::size_t i = 1; i < places_.size(); ++i) s.workers.push_back(*places_[i].where);
    return s;
  }

  // The coordinator first, so that nobody is admitted any more; then the workers.
  void end_all() {
    const time_ns began = monotonic_now();
    if (places_.front().child) places_.front().child->send(SIGTERM);
    wait_for_end(1, began + k_coordinator_first);
    // Once each: a second SIGTERM would end the coordinator in the middle of its work.
    for (std::size_t i = 1; i < places_.size(); ++i) {
      if (places_[i].child) places_[i].child->send(SIGTERM);
    }
    wait_for_end(places_.size(), began + settings_.drain.timeout + k_teardown_limit);
    for (place& p : places_) {
      if (p.child && !p.child->take_exit()) log_.warn("child_killed", {{"name", p.name}});
      p.child.reset();
    }
  }

  void wait_for_end(std::size_t count, time_ns until) {
    for (std::size_t i = 0; i < count; ++i) {
      child_process* const child = places_[i].child.get();
      while (child != nullptr && !child->take_exit()) {
        const time_ns now = monotonic_now();
        if (now >= until) return;
        pollfd fd{child->exit_descriptor(), POLLIN, 0};
        ::poll(&fd, 1, static_cast<int>((until - now) / k_millisecond + 1));
      }
    }
  }

  const config::up_settings& given_;
  const config::settings& settings_;  // of them
  const up_wish& wish_;
  event_log& log_;
  stop_signal& stop_;
  service_notice manager_;  // before a child inherits its variable
  std::unique_ptr<state_folder> own_state_;
  std::string state_path_;
  std::uint32_t workers_ = 1;
  std::vector<std::string> worker_http_;  // by worker
  std::vector<std::string> devices_;      // by worker
  std::vector<place> places_;             // the coordinator, then the workers
  std::atomic<pid_t> coordinator_pid_{0};
  given_up_workers given_up_;
  bool said_ready_ = false;
  int failed_ = 0;
};

}  // namespace

expected<int> run_up(const config::up_settings& settings, const up_wish& wish, event_log& log,
                     stop_signal& stop, const std::function<void(const up_state&)>& on_ready) {
  return supervisor(settings, wish, log, stop).run(on_ready);
}

}  // namespace moetier::up
