#include "actors/roles/worker_role.hpp"

#include <memory>

#include <unistd.h>

#include "actors/cli/exit_code.hpp"
#include "actors/config/endpoint.hpp"
#include "actors/control/worker_host.hpp"
#include "actors/http/debug_pages.hpp"
#include "actors/http/http_server.hpp"
#include "actors/http/pages.hpp"
#include "actors/http/worker_probe.hpp"
#include "actors/process/exit_watchdog.hpp"
#include "actors/process/random.hpp"
#include "actors/process/service_notice.hpp"
#include "actors/roles/ending.hpp"
#include "actors/roles/link_security.hpp"
#include "actors/roles/worker_machine.hpp"

namespace moetier::roles {
namespace {

// Of taking everything down once drained: with the default drain.timeout, SIGTERM to exit is 5 s.
constexpr duration_ns k_teardown_limit = 500 * k_millisecond;
constexpr duration_ns k_manager_turn = 250 * k_millisecond;
constexpr duration_ns k_drain_margin = 250 * k_millisecond;

std::vector<http::page> pages_of(const std::string& name, const actors::worker_host& host,
                                 const worker_machine& machine, const std::string& config) {
  std::vector<http::page> pages = http::style_pages();
  pages.push_back({"/livez", [&machine] { return http::livez(machine.alive()); }});
  pages.push_back({"/readyz", [&host] {
                     const auto reasons = http::not_ready_reasons(host.summary());
                     return http::readyz(reasons.empty(), reasons);
                   }});
  pages.push_back({"/metrics", [&host, &machine] {
                     http::worker_figures f = machine.figures();
                     f.core = host.summary();
                     return http::metrics_page(http::worker_metrics(f));
                   }});
  pages.push_back({"/version", [] { return http::version_page(); }});
  pages.push_back({"/", [name, &host] { return http::worker_status_page(name, host.summary()); }});
  pages.push_back(http::debug_page("config", [&config] { return config; }));
  pages.push_back(
      http::debug_page("environment", [&machine] { return machine.environment_text(); }));
  pages.push_back(http::debug_page("waits", [&machine] { return machine.waits_text(); }));
  pages.push_back(http::debug_page("flight", [&machine] { return machine.flight_text(); }));
  return pages;
}

workers::core_options core_options_from(const config::settings& s, incarnation_id incarnation) {
  workers::core_options o;
  o.name = s.worker.name;
  o.incarnation = incarnation;
  o.heartbeat_interval = s.detect.heartbeat;
  o.heartbeat_timeout = s.detect.timeout;
  o.drain_limit = s.drain.timeout;
  return o;
}

}  // namespace

expected<void> run_worker(const config::loaded& loaded, event_log& log, stop_signal& stop,
                          const std::function<void(const listening&)>& on_listening) {
  const config::settings& s = loaded.values;
  const std::string config_document = config::print_json(loaded);
  ending end(stop);
  const auto security = load_worker_security(s, log);
  if (!security) return tl::unexpected(security.error());
  if (auto safe = check_model_folder(s.model.path); !safe) return safe;
  service_notice manager;
  const incarnation_id incarnation(random_bits());
  auto machine = worker_machine::make(s, incarnation, log, end);
  if (!machine) return tl::unexpected(machine.error());

  auto made = actors::actor_world::make(security->control, log);
  if (!made) return tl::unexpected(made.error());
  std::unique_ptr<actors::actor_world> world = std::move(*made);
  workers::core_options options = core_options_from(s, incarnation);
  options.node = world->node();
  (*machine)->describe(options);
  auto host =
      std::make_unique<actors::worker_host>(*world, *config::parse_endpoint(s.worker.coordinator),
                                            std::move(options), random_bits(), **machine, log);
  (*machine)->start([&host](workers::event e) { host->post(std::move(e)); });
  auto http = http::http_server::start(*config::parse_endpoint(s.http.listen),
                                       pages_of(s.worker.name, *host, **machine, config_document));
  if (!http) {
    (*machine)->stop();
    return tl::unexpected(http.error());
  }
  host->start();
  const listening where{.role = "worker",
                        .name = s.worker.name,
                        .http = config::endpoint_text((*http)->address()),
                        .pid = static_cast<int>(::getpid())};
  log.info("listening", {{"http", where.http}});
  on_listening(where);

  while (!stop.wait(manager.wanted() ? k_manager_turn : 3600 * k_second)) {
    const auto reasons = http::not_ready_reasons(host->summary());
    manager.readiness(reasons.empty(), reasons);
  }
  manager.stopping();
  // A device that hangs must not hide why the process ends.
  const auto why = end.result();
  const int code = why ? 0 : static_cast<int>(cli::exit_code_of(why.error()));
  const exit_watchdog watchdog(log, "worker", s.drain.timeout + k_teardown_limit, code);
  world->set_exit_code(code);
  host->post(workers::shut_down{.device_lost = !why && why.error().why == reason::device_lost});
  if (!end.wait(s.drain.timeout + k_drain_margin)) log.warn("drain_timeout");
  http->reset();
  // Orders end before the threads that obey them; their answers are posted to an actor that is
  // gone.
  host->stop();
  (*machine)->stop();
  host.reset();
  world.reset();
  log.info("stopped");
  return end.result();
}

}  // namespace moetier::roles
