#include "actors/roles/coordinator_role.hpp"

#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>

#include <fmt/core.h>
#include <unistd.h>

#include "actors/cli/exit_code.hpp"
#include "actors/config/endpoint.hpp"
#include "actors/config/input_error.hpp"
#include "actors/control/coordinator_host.hpp"
#include "actors/http/coordinator_probe.hpp"
#include "actors/http/debug_pages.hpp"
#include "actors/http/pages.hpp"
#include "actors/process/exit_watchdog.hpp"
#include "actors/process/random.hpp"
#include "actors/roles/border.hpp"
#include "actors/process/service_notice.hpp"
#include "actors/process/thread_time.hpp"
#include "actors/roles/ending.hpp"
#include "actors/roles/link_security.hpp"
#include "actors/roles/router_shelf.hpp"
#include "actors/roles/routing_digest.hpp"
#include "actors/roles/served_model.hpp"
#include "actors/roles/text_file.hpp"
#include "coordinator/gateway/gateway.hpp"
#include "coordinator/record_store.hpp"
#include "coordinator/rpc/rpc_server.hpp"
#include "coordinator/rpc/tier_document.hpp"
#include "transport/waits/flight_file.hpp"
#include "transport/waits/wait_document.hpp"
#include "eplb/plan_file.hpp"
#include "coordinator/resolution/resolve.hpp"
#include "coordinator/resolution/tier_request.hpp"
#include "kernels/routing/route.hpp"
#include "schemas/base/limits.hpp"
#include "schemas/model/config.hpp"
#include "workers/weights/checkpoint.hpp"

namespace moetier::roles {
namespace {

constexpr duration_ns k_manager_turn = 250 * k_millisecond;
constexpr duration_ns k_actor_hangs_after = 3 * k_second;
// Of taking everything down once drained: with the default drain.timeout, SIGTERM to exit is 5 s.
constexpr duration_ns k_teardown_limit = 500 * k_millisecond;

// What is wrong with the wishes whoever the workers are: an unknown name, a routing method whose
// tables the model lacks.
expected<void> check_wishes(const coordinator::core_options& o) {
  auto any = coordinator::tier_request(o.model,
                                       {.answers = o.answers,
                                        .quantise = o.quantise,
                                        .tokens_max = o.tokens_max,
                                        .backend = o.backend_force,
                                        .communication = o.communication},
                                       {{"any", {}}}, {o.model.experts});
  any.offline = true;
  const auto weighed = coordinator::weigh(any);
  if (!weighed && weighed.error().why == reason::config_invalid)
    return tl::unexpected(weighed.error());
  const kernels::routing_params params{
      .rule = o.model.routing, .experts = o.model.experts, .top_k = o.model.top_k};
  if (auto ok = kernels::check_routing(params); !ok) return ok;
  for (const layer_routing& layer : o.tables->layers) {
    if (auto ok = kernels::check_layer(params, layer); !ok) return ok;
  }
  return {};
}

coordinator::tenant_list tenants_from(const std::vector<config::tenant_settings>& given) {
  coordinator::tenant_list list;
  for (const config::tenant_settings& t : given) {
    list.push_back({.match = t.match,
                    .weight = t.weight,
                    .highest = t.highest,
                    .sessions = t.sessions,
                    .tokens_in_flight = t.tokens_in_flight,
                    .tokens_per_second = t.tokens_per_second,
                    .models = t.models});
  }
  return list;
}

// Every session's opening carries a routing snapshot, tables and all, in one message: what is too
// large for it could be served to nobody.
expected<void> check_snapshot_size(const routing_tables& tables) {
  constexpr std::size_t k_rest = std::size_t{256} * 1024;  // placement, shares, addresses
  std::size_t bytes = 0;
  for (const layer_routing& layer : tables.layers) {
    bytes += layer.table.size() * sizeof(layer.table[0]) +
             sizeof(float) * (layer.bias.size() + layer.expert_scale.size() +
                              layer.table_weights.size() + layer.shared_gate.size());
  }
  if (bytes + k_rest <= k_rpc_message_bytes_max) return {};
  return fail(reason::model_unsupported, "the size of routing tables, biases and token tables",
              fmt::format("{} bytes", bytes),
              fmt::format("at most {}, as each session gets them in one message",
                          k_rpc_message_bytes_max - k_rest));
}

expected<coordinator::core_options> core_options_from(const config::settings& s,
                                                      const workers::checkpoint& files) {
  coordinator::core_options o;
  auto model = served_model(s, files.model());
  if (!model) return tl::unexpected(model.error());
  o.model = std::move(*model);
  o.checkpoint_fingerprint = files.model().fingerprint;
  auto tables = files.read_routing_tables();
  if (!tables) return tl::unexpected(config::of_input_file(tables.error()));
  if (auto fits = check_snapshot_size(*tables); !fits) return tl::unexpected(fits.error());
  o.routing_digest = routing_digest(files.routers_digest(), *tables);
  o.checkpoint_digest = files.digest();
  o.tables = std::make_shared<const routing_tables>(std::move(*tables));
  const auto format = wished_format(s, files.model());
  if (!format) return tl::unexpected(format.error());
  o.quantise = *format;
  o.backend_force = s.backend.force;
  o.allow_degradation = s.backend.allow_degradation;
  o.communication = s.transport.carrier;
  o.answers = s.moe.return_mode == "exact" ? resolution::answer_mode::exact
                                           : resolution::answer_mode::partial;
  o.hold_shared_experts = s.moe.shared_experts == "auto";
  o.lora = s.moe.lora == "on";
  o.ends_when_infeasible = s.coordinator.when_infeasible == "end";
  o.prepare_limit = s.coordinator.load_timeout;
  o.workers_expected = s.coordinator.workers;
  if (!s.coordinator.placement.empty()) {
    auto text = read_text(s.coordinator.placement);
    if (!text) return tl::unexpected(text.error());
    const auto slots = eplb::slots_per_worker_of(*text, s.coordinator.placement);
    if (!slots) return tl::unexpected(slots.error());
    o.workers_expected = static_cast<std::uint32_t>(slots->size());
    o.placement_file_text = std::move(*text);
    // Its name alone: clients read why the tier is not ready, and nothing of this machine.
    o.placement_file_name = std::filesystem::path(s.coordinator.placement).filename().string();
  }
  o.heartbeat_interval = s.detect.heartbeat;
  o.heartbeat_timeout = s.detect.timeout;
  o.lease = s.session.lease;
  o.sessions_max = s.session.max;
  o.sources_max = s.transport.max_sources;
  o.tokens_max = s.session.max_tokens;
  o.call_deadline = s.deadline.decode;
  o.prefill_deadline = s.deadline.prefill;
  o.step_deadline = s.deadline.step;
  o.bank_bytes_max = s.session.bank_memory;
  if (!s.tenants.empty()) o.tenants = tenants_from(s.tenants);
  o.model_names = {std::filesystem::path(s.model.path).lexically_normal().filename().string(),
                   fmt::format("{:016x}", o.model.fingerprint)};
  if (auto fine = check_wishes(o); !fine) return tl::unexpected(fine.error());
  return o;
}

// What CAF calls the thread that serves its sockets.
constexpr std::string_view k_io_thread = "caf.multiplexer";

// What the pages show. Requires: all outlive the server.
struct page_sources {
  const actors::coordinator_host& host;
  const coordinator::rpc_server& rpc;
  const event_log& log;
  const coordinator::gateway* gateway;  // null = off
  const std::string& config;            // --print-config's document
  std::function<http::border_figures()> border;
};

std::string metrics_of(const page_sources& from) {
  http::coordinator_counters counters{.log_lines_dropped = from.log.dropped(),
                                      .mailbox_depth = from.host.mailbox_depth(),
                                      .calls_overloaded = from.rpc.counters().calls_overloaded,
                                      .border = from.border(),
                                      .io_thread_cpu_seconds = thread_cpu_seconds(k_io_thread),
                                      .rpc = from.rpc.reading()};
  if (from.gateway != nullptr) counters.gateway = from.gateway->read();
  return http::coordinator_metrics(*from.host.view(), counters);
}

std::vector<http::page> pages_of(const page_sources& from) {
  const actors::coordinator_host& host = from.host;
  const coordinator::gateway* gateway = from.gateway;
  std::vector<http::page> pages =
      http::status_pages([&host] { return coordinator::status_document(*host.view()); });
  // The view is made anew by every tick of the actor: an old one means that it hangs.
  pages.push_back(
      {"/livez", [&host] { return http::livez(host.view_age() < k_actor_hangs_after); }});
  pages.push_back({"/readyz", [&host] {
                     const auto v = host.view();
                     return http::readyz(v->ready, v->not_ready_reasons);
                   }});
  pages.push_back({"/metrics", [from] { return http::metrics_page(metrics_of(from)); }});
  pages.push_back({"/version", [] { return http::version_page(); }});
  const auto debug = [&pages](std::string_view name, std::function<expected<std::string>()> text) {
    pages.push_back(http::debug_page(name, std::move(text)));
  };
  debug("config", [&config = from.config] { return config; });
  debug("placement", [&host] { return coordinator::placement_document(*host.view()); });
  debug("experts", [&host] { return coordinator::experts_document(*host.view()); });
  debug("environment", [&host] { return coordinator::environments_document(*host.view()); });
  debug("resolution", [&host]() -> expected<std::string> {
    const auto resolved = host.view()->resolved;
    if (resolved == nullptr) return fail(reason::not_ready, "nothing is resolved yet");
    return resolution::readable_json(*resolved);
  });
  const auto of_gateway = [gateway](auto document) -> std::function<expected<std::string>()> {
    return [gateway, document]() -> expected<std::string> {
      if (gateway == nullptr) return fail(reason::not_enabled, "the gateway");
      return document(gateway->waits(), "worker", monotonic_now());
    };
  };
  debug("waits", of_gateway(&transport::waits_document));
  debug("flight", of_gateway(&transport::flight_document));
  return pages;
}

// What a running coordinator is made of, in the order in which it is made.
class coordinator_process final {
 public:
  coordinator_process(const config::loaded& loaded, event_log& log, ending& end)
      : settings_(loaded.values),
        config_document_(config::print_json(loaded)),
        log_(log),
        ending_(end) {}

  expected<listening> start() {
    if (settings_.model.path.empty()) {
      return fail(reason::config_invalid, "model.path", "not set", "a model directory");
    }
    // What config.json alone can refuse comes before the weights are looked at.
    const auto described = read_config(settings_.model.path + "/config.json");
    if (!described) return tl::unexpected(config::of_input_file(described.error()));
    const auto served = served_model(settings_, *described);
    if (!served) return tl::unexpected(served.error());
    auto security = load_coordinator_security(settings_, log_);
    if (!security) return tl::unexpected(security.error());
    security_ = std::move(*security);
    if (auto safe = check_model_folder(settings_.model.path); !safe) {
      return tl::unexpected(safe.error());
    }
    auto store = coordinator::record_store::open(settings_.coordinator.state_dir);
    if (!store) return tl::unexpected(store.error());
    store_ = std::move(*store);
    if (!store_->damage().empty()) {
      log_.error("record_damaged",
                 {{"what", store_->damage()},
                  {"serves", store_->stored() ? "the record of the other file" : "no record"}});
    }
    if (auto fits = check_stored(*served); !fits) return tl::unexpected(fits.error());
    auto files = workers::checkpoint::open(settings_.model.path, {.routers = true});
    if (!files) return tl::unexpected(config::of_input_file(files.error()));
    files_ = std::move(*files);
    routers_ = std::make_unique<router_shelf>(*files_);
    auto options = core_options_from(settings_, *files_);
    if (!options) return tl::unexpected(options.error());
    if (auto fits = check_stored(*options); !fits) return tl::unexpected(fits.error());
    if (auto fits = check_plan_file(*options); !fits) return tl::unexpected(fits.error());
    if (auto made = open_gateway(); !made) return tl::unexpected(made.error());

    auto world = actors::actor_world::make(security_.control, log_);
    if (!world) return tl::unexpected(world.error());
    world_ = std::move(*world);
    options->node = world_->node();
    host_ = std::make_unique<actors::coordinator_host>(
        *world_, std::move(*options), store_->stored(),
        actors::coordinator_world{
            [this](epoch_number expected_epoch, const coordinator::record& value) {
              return store_->write(expected_epoch, value);
            },
            [this](bool failed, reason cause, const std::string& why) {
              if (!failed) return ending_.core_stopped(std::nullopt);
              // Any other reason's sentence is whole already.
              ending_.core_stopped(cause == reason::internal_error
                                       ? make_error(cause, why)
                                       : error{status_of(cause), cause, why});
            },
            [this](std::size_t moe_index) { return routers_->get(moe_index); }},
        log_);
    auto border = rpc_options_from(settings_, security_, log_);
    if (!border) return tl::unexpected(border.error());
    admin_socket_ = border->admin_socket;
    rpc_ = std::make_unique<coordinator::rpc_server>(*host_, gateway_.get(), std::move(*border));
    host_->start(*rpc_);
    return listen();
  }

  // The RPC link's renewed files, for the connections to come; files that cannot serve leave those
  // before in use.
  void renew_certificates() {
    if (settings_.security.rpc.cert.empty()) return;
    auto renewed = reload_rpc(settings_, log_);
    if (!renewed) {
      log_.error("certificate_not_renewed", {{"why", renewed.error().text}});
      return;
    }
    rpc_->renew(*renewed);
    const std::lock_guard lock(security_mutex_);
    security_.rpc = std::move(*renewed);
  }

  // What /readyz says, for the service manager.
  void tell(service_notice& manager) const {
    const auto v = host_->view();
    manager.readiness(v->ready, v->not_ready_reasons);
  }

  // Admission stops, what is in flight ends, everything goes in the reverse order. `code`: what the
  // process is about to end with.
  void stop(int code) {
    world_->set_exit_code(code);
    const time_ns until = monotonic_now() + settings_.drain.timeout;
    // The core works on while thin clients' calls end: one of them may need a newer snapshot.
    const bool drained = rpc_->drain(settings_.drain.timeout);
    host_->post(coordinator::shut_down{});
    const time_ns now = monotonic_now();
    const bool core_stopped = ending_.wait(now < until ? until - now : 0);
    if (!drained || !core_stopped) log_.warn("drain_timeout");
    http_.reset();
    rpc_->stop();
    host_.reset();
    gateway_.reset();
    rpc_.reset();
    world_.reset();
  }

 private:
  // The core refuses another model's record as well, but only once others can reach it.
  expected<void> check_stored(const model_description& model) const {
    const auto& stored = store_->stored();
    if (!stored || stored->model_fingerprint == model.fingerprint) return {};
    return fail(reason::model_mismatch, fmt::format("{:016x}", model.fingerprint),
                fmt::format("{:016x}, by its durable record", stored->model_fingerprint));
  }

  // Nor are other weights served under a plan that was checked with these.
  expected<void> check_stored(const coordinator::core_options& options) const {
    const auto& stored = store_->stored();
    if (!stored || stored->generation.value == 0) return {};
    const auto fits = [](const char* what, std::uint64_t now,
                         std::uint64_t kept) -> expected<void> {
      if (now == kept) return {};
      return fail(reason::record_mismatch, what, fmt::format("{:016x}", now),
                  fmt::format("{:016x}", kept));
    };
    if (auto ok = fits("routers", options.routing_digest, stored->routing_digest); !ok) return ok;
    return fits("weight files", options.checkpoint_digest, stored->checkpoint_digest);
  }

  // A file that fits this model with no workers at all is not worth waiting for them. One that an
  // older record outranks is told of by the core.
  expected<void> check_plan_file(const coordinator::core_options& options) const {
    if (options.placement_file_text.empty()) return {};
    if (store_->stored() && store_->stored()->generation.value != 0) return {};
    const auto slots =
        eplb::slots_per_worker_of(options.placement_file_text, options.placement_file_name);
    if (!slots) return tl::unexpected(slots.error());
    std::vector<eplb::worker_span> spans;
    std::uint32_t next = 0;
    for (std::size_t i = 0; i < slots->size(); ++i) {
      spans.push_back({worker_id(static_cast<std::uint16_t>(i)), fmt::format("worker@{}", i), next,
                       (*slots)[i]});
      next += (*slots)[i];
    }
    const auto placed = eplb::read_placed_plan(
        options.placement_file_text, options.placement_file_name,
        {options.model.experts, options.model.moe_layers, spans, options.model.fingerprint});
    if (placed) return {};
    // A plan that is none by itself is a bad file; one that is somebody else's does not fit.
    const auto alone =
        eplb::read_plan_file(options.placement_file_text, options.placement_file_name);
    if (!alone) return tl::unexpected(alone.error());
    return fail(reason::placement_invalid, placed.error().text);
  }

  expected<void> open_gateway() {
    if (!settings_.gateway.enabled) return {};
    auto carrier = transport::open_carrier(
        config::carrier_of(settings_), {.listen = settings_.transport.listen,
                                        .checksum_payload = settings_.transport.checksum == "on",
                                        .allow_tcp = settings_.transport.allow_tcp != "off"});
    if (!carrier) return tl::unexpected(carrier.error());
    carrier_ = std::move(*carrier);
    log_.info("carrier", {{"name", carrier_->name()}, {"lanes", carrier_->describe()}});
    gateway_ = std::make_unique<coordinator::gateway>(
        *carrier_,
        coordinator::gateway_options{
            .sessions_max = settings_.session.max,
            .bytes_max = settings_.gateway.memory,
            .report_late =
                [this](const coordinator::late_worker& late) {
                  host_->post(coordinator::late_report{late.session, late.incarnation, late.worker,
                                                       late.worker_incarnation});
                },
            .router = [this](std::size_t moe_index) { return routers_->get(moe_index); },
            .on_timeout = [this](const transport::wait_record& wait,
                                 const transport::wait_ring& ring) { tell_timeout(wait, ring); }});
    return {};
  }

  http::border_figures border() const {
    const std::lock_guard lock(security_mutex_);
    return border_figures_of(rpc_->counters(), security_);
  }

  // On a session's thread. The error goes to its client; here stands what the client is not told.
  void tell_timeout(const transport::wait_record& wait, const transport::wait_ring& ring) {
    const bool kept = flight_.write(ring, "worker", monotonic_now());
    log_.warn("wait_timeout", {{"peer", fmt::format("worker {}", wait.peer)},
                               {"session", wait.session.value},
                               {"layer", wait.layer.value},
                               {"step", wait.step},
                               {"micro_batch", wait.micro_batch},
                               {"bytes_due", wait.bytes_due},
                               {"bytes_seen", wait.bytes_seen},
                               {"age_us", wait.age / k_microsecond},
                               {"flight", kept ? "written" : "not written again yet"}});
  }

  expected<listening> listen() {
    listening l{.role = "coordinator", .pid = static_cast<int>(::getpid())};
    const auto rpc = config::parse_endpoint(settings_.coordinator.rpc_listen);
    const auto port = rpc_->start(settings_.coordinator.rpc_listen);
    if (!port) return tl::unexpected(port.error());
    l.rpc = config::endpoint_text({rpc->host, *port});
    l.admin = admin_socket_;
    const auto control =
        host_->publish(*config::parse_endpoint(settings_.coordinator.control_listen));
    if (!control) return tl::unexpected(control.error());
    l.control = config::endpoint_text(*control);
    auto http = http::http_server::start(*config::parse_endpoint(settings_.http.listen),
                                         pages_of({.host = *host_,
                                                   .rpc = *rpc_,
                                                   .log = log_,
                                                   .gateway = gateway_.get(),
                                                   .config = config_document_,
                                                   .border = [this] { return border(); }}));
    if (!http) return tl::unexpected(http.error());
    http_ = std::move(*http);
    l.http = config::endpoint_text(http_->address());
    return l;
  }

  const config::settings& settings_;
  const std::string config_document_;
  event_log& log_;
  ending& ending_;
  mutable std::mutex security_mutex_;  // guards security_.rpc once the process serves
  link_security security_;
  std::string admin_socket_;
  std::unique_ptr<workers::checkpoint> files_;
  std::unique_ptr<router_shelf> routers_;
  std::unique_ptr<coordinator::record_store> store_;
  std::unique_ptr<transport::Communication> carrier_;
  transport::flight_file flight_{settings_.coordinator.state_dir + "/flight.json"};
  std::unique_ptr<coordinator::gateway> gateway_;
  std::unique_ptr<actors::actor_world> world_;
  std::unique_ptr<coordinator::rpc_server> rpc_;
  // Before rpc_: the actor calls the sink until its end.
  std::unique_ptr<actors::coordinator_host> host_;
  std::unique_ptr<http::http_server> http_;
};

}  // namespace

expected<void> run_coordinator(const config::loaded& loaded, event_log& log, stop_signal& stop,
                               const std::function<void(const listening&)>& on_listening) {
  ending end(stop);
  service_notice manager;
  coordinator_process process(loaded, log, end);
  const auto started = process.start();
  if (!started) return tl::unexpected(started.error());
  log.info("listening",
           {{"rpc", started->rpc}, {"control", started->control}, {"http", started->http}});
  on_listening(*started);
  stop.on_hangup([&process] { process.renew_certificates(); });
  while (!stop.wait(manager.wanted() ? k_manager_turn : 3600 * k_second)) process.tell(manager);
  stop.on_hangup({});
  manager.stopping();
  const auto why = end.result();
  const int code = why ? 0 : static_cast<int>(cli::exit_code_of(why.error()));
  const exit_watchdog watchdog(log, "coordinator", loaded.values.drain.timeout + k_teardown_limit,
                               code);
  process.stop(code);
  log.info("stopped");
  return end.result();
}

}  // namespace moetier::roles
