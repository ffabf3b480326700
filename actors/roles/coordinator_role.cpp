#include "actors/roles/coordinator_role.hpp"

#include <memory>
#include <optional>

#include <fmt/format.h>
#include <unistd.h>

#include "actors/config/endpoint.hpp"
#include "actors/config/input_error.hpp"
#include "actors/control/coordinator_host.hpp"
#include "actors/http/coordinator_probe.hpp"
#include "actors/http/pages.hpp"
#include "actors/process/exit_watchdog.hpp"
#include "actors/process/random.hpp"
#include "actors/process/service_notice.hpp"
#include "actors/roles/ending.hpp"
#include "actors/roles/router_shelf.hpp"
#include "actors/roles/routing_digest.hpp"
#include "actors/roles/served_model.hpp"
#include "actors/roles/text_file.hpp"
#include "coordinator/gateway/gateway.hpp"
#include "coordinator/record_store.hpp"
#include "coordinator/rpc/rpc_server.hpp"
#include "coordinator/rpc/tier_document.hpp"
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
  o.workers_expected = s.coordinator.workers;
  if (!s.coordinator.placement.empty()) {
    auto text = read_text(s.coordinator.placement);
    if (!text) return tl::unexpected(text.error());
    const auto slots = eplb::slots_per_worker_of(*text, s.coordinator.placement);
    if (!slots) return tl::unexpected(slots.error());
    o.workers_expected = static_cast<std::uint32_t>(slots->size());
    o.placement_file_text = std::move(*text);
    o.placement_file_name = s.coordinator.placement;
  }
  o.heartbeat_interval = s.detect.heartbeat;
  o.heartbeat_timeout = s.detect.timeout;
  o.lease = s.session.lease;
  o.sessions_max = s.session.max;
  o.sources_max = s.transport.max_sources;
  o.tokens_max = s.session.max_tokens;
  o.call_deadline = s.deadline.decode;
  if (auto fine = check_wishes(o); !fine) return tl::unexpected(fine.error());
  return o;
}

std::vector<http::page> pages_of(const actors::coordinator_host& host, const event_log& log) {
  return {
      // The view is made anew by every tick of the actor: an old one means that it hangs.
      {"/livez", [&host] { return http::livez(host.view_age() < k_actor_hangs_after); }},
      {"/readyz",
       [&host] {
         const auto v = host.view();
         return http::readyz(v->ready, v->not_ready_reasons);
       }},
      {"/metrics",
       [&host, &log] {
         return http::metrics_page(http::coordinator_metrics(
             *host.view(),
             {.log_lines_dropped = log.dropped(), .mailbox_depth = host.mailbox_depth()}));
       }},
      {"/version", [] { return http::version_page(); }},
      {"/debug/placement",
       [&host]() -> http::response {
         auto document = coordinator::placement_document(*host.view());
         if (!document) return {503, "text/plain; charset=utf-8", document.error().text + "\n"};
         return {200, "application/json", std::move(*document)};
       }},
      {"/debug/resolution",
       [&host]() -> http::response {
         const auto resolved = host.view()->resolved;
         if (resolved == nullptr)
           return {503, "text/plain; charset=utf-8", "nothing is resolved yet\n"};
         return {200, "application/json", resolution::readable_json(*resolved)};
       }},
      {"/", [&host] { return http::coordinator_status_page(*host.view()); }},
  };
}

// What a running coordinator is made of, in the order in which it is made.
class coordinator_process final {
 public:
  coordinator_process(const config::settings& s, event_log& log, ending& end)
      : settings_(s), log_(log), ending_(end) {}

  expected<listening> start() {
    if (settings_.model.path.empty()) {
      return fail(reason::config_invalid, "model.path", "not set", "a model directory");
    }
    // What config.json alone can refuse comes before the weights are looked at.
    const auto described = read_config(settings_.model.path + "/config.json");
    if (!described) return tl::unexpected(config::of_input_file(described.error()));
    const auto served = served_model(settings_, *described);
    if (!served) return tl::unexpected(served.error());
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

    const auto& security = settings_.security;
    auto world = actors::actor_world::make({security.cert, security.key, security.ca}, log_);
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
    rpc_ = std::make_unique<coordinator::rpc_server>(
        *host_, gateway_.get(), coordinator::tls_files{security.cert, security.key, security.ca});
    host_->start(*rpc_);
    return listen();
  }

  // What /readyz says, for the service manager.
  void tell(service_notice& manager) const {
    const auto v = host_->view();
    manager.readiness(v->ready, v->not_ready_reasons);
  }

  // Admission stops, what is in flight ends, everything goes in the reverse order.
  void stop() {
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
        settings_.transport.carrier == "auto" ? "ucx" : settings_.transport.carrier,
        {.listen = settings_.transport.listen,
         .checksum_payload = settings_.transport.checksum == "on",
         .allow_tcp = settings_.transport.allow_tcp != "off"});
    if (!carrier) return tl::unexpected(carrier.error());
    carrier_ = std::move(*carrier);
    log_.info("carrier", {{"name", carrier_->name()}, {"lanes", carrier_->describe()}});
    gateway_ = std::make_unique<coordinator::gateway>(
        *carrier_, coordinator::gateway_options{.sessions_max = settings_.session.max,
                                                .router = [this](std::size_t moe_index) {
                                                  return routers_->get(moe_index);
                                                }});
    return {};
  }

  expected<listening> listen() {
    listening l{.role = "coordinator", .pid = static_cast<int>(::getpid())};
    const auto rpc = config::parse_endpoint(settings_.coordinator.rpc_listen);
    const auto port = rpc_->start(settings_.coordinator.rpc_listen);
    if (!port) return tl::unexpected(port.error());
    l.rpc = config::endpoint_text({rpc->host, *port});
    const auto control =
        host_->publish(*config::parse_endpoint(settings_.coordinator.control_listen));
    if (!control) return tl::unexpected(control.error());
    l.control = config::endpoint_text(*control);
    auto http = http::http_server::start(*config::parse_endpoint(settings_.http.listen),
                                         pages_of(*host_, log_));
    if (!http) return tl::unexpected(http.error());
    http_ = std::move(*http);
    l.http = config::endpoint_text(http_->address());
    return l;
  }

  const config::settings& settings_;
  event_log& log_;
  ending& ending_;
  std::unique_ptr<workers::checkpoint> files_;
  std::unique_ptr<router_shelf> routers_;
  std::unique_ptr<coordinator::record_store> store_;
  std::unique_ptr<transport::Communication> carrier_;
  std::unique_ptr<coordinator::gateway> gateway_;
  std::unique_ptr<actors::actor_world> world_;
  std::unique_ptr<coordinator::rpc_server> rpc_;
  // Before rpc_: the actor calls the sink until its end.
  std::unique_ptr<actors::coordinator_host> host_;
  std::unique_ptr<http::http_server> http_;
};

}  // namespace

expected<void> run_coordinator(const config::settings& settings, event_log& log, stop_signal& stop,
                               const std::function<void(const listening&)>& on_listening) {
  ending end(stop);
  service_notice manager;
  coordinator_process process(settings, log, end);
  const auto started = process.start();
  if (!started) return tl::unexpected(started.error());
  log.info("listening",
           {{"rpc", started->rpc}, {"control", started->control}, {"http", started->http}});
  on_listening(*started);
  while (!stop.wait(manager.wanted() ? k_manager_turn : 3600 * k_second)) process.tell(manager);
  manager.stopping();
  const exit_watchdog watchdog(log, "coordinator", settings.drain.timeout + k_teardown_limit);
  process.stop();
  log.info("stopped");
  return end.result();
}

}  // namespace moetier::roles
