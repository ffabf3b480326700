#include "transport/client/abi/service.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/core.h>

#include "transport/client/abi/session.hpp"
#include "transport/client/abi/versioned_struct.hpp"

namespace moetier::abi {
namespace {

constexpr duration_ns k_connect_default = 5 * k_second;

template <std::size_t N>
void copy_text(char (&to)[N], std::string_view from) noexcept {
  const std::size_t length = std::min(from.size(), N - 1);
  std::memcpy(to, from.data(), length);
  to[length] = '\0';
}

std::string text_or_empty(const char* text) { return text == nullptr ? "" : text; }

expected<std::optional<client::tls_wish>> tls_of(const moetier_tls* given) {
  if (given == nullptr) return std::optional<client::tls_wish>();
  const auto wish = read_struct("tls", given);
  if (!wish) return unexpected_error(wish.error());
  for (const auto& [name, path] :
       {std::pair("tls cert", wish->cert), std::pair("tls key", wish->key),
        std::pair("tls ca", wish->ca)}) {
    if (path == nullptr || *path == '\0') {
      return fail(reason::invalid_argument, name, path == nullptr ? "null" : "empty",
                  "the path of a PEM file");
    }
  }
  return client::tls_wish{.files = {wish->cert, wish->key, wish->ca},
                          .server_name = text_or_empty(wish->server_name)};
}

}  // namespace

std::uint32_t live_workers(const transport::routing_snapshot& snapshot) noexcept {
  return static_cast<std::uint32_t>(
      std::count_if(snapshot.workers.begin(), snapshot.workers.end(),
                    [](const transport::snapshot_worker& w) { return w.live; }));
}

expected<std::unique_ptr<service>> service::open(const moetier_service_options& options,
                                                 service_world world) {
  if (options.address == nullptr) {
    return fail(reason::invalid_argument, "address", "null", "host:port");
  }
  const std::string_view address = options.address;
  if (address.starts_with("spawn:")) {
    return fail(reason::not_enabled, "an address of the kind spawn:");
  }
  const auto tls = tls_of(options.tls);
  if (!tls) return unexpected_error(tls.error());
  const duration_ns limit =
      options.connect_timeout_ns == 0 ? k_connect_default : options.connect_timeout_ns;
  const time_ns until = monotonic_now() + std::min(limit, 3600 * k_second);
  auto link = world.connect(address, limit, *tls);
  if (!link) return unexpected_error(link.error());
  const time_ns now = monotonic_now();
  auto first = (*link)->snapshot(until > now ? until - now : 1);
  if (!first) return unexpected_error(first.error());
  const std::uint64_t served = (*first)->model.fingerprint;
  if (options.model_fingerprint != 0 && options.model_fingerprint != served) {
    return fail(reason::model_mismatch, fmt::format("{:016x}", options.model_fingerprint),
                fmt::format("{:016x}", served));
  }
  return std::unique_ptr<service>(
      new service(std::move(world), std::move(*link), options, std::move(*first)));
}

service::service(service_world world, std::unique_ptr<client::tier_link> link,
                 const moetier_service_options& options, transport::snapshot_ptr first)
    : world_(std::move(world)),
      tenant_(options.tenant == nullptr ? "default" : options.tenant),
      first_(std::move(first)),
      link_(std::move(link)) {
  if (options.flight_file != nullptr) {
    flight_file_ = std::make_unique<transport::flight_file>(options.flight_file);
  }
  routers_ = std::make_unique<client::router_cache>(*link_);
  for (const layer_id layer : first_->model.moe_layers) layers_.push_back(layer.value);
  link_->on_event([this](client::link_event event, session_id which) { hear(event, which); });
}

service::~service() = default;

void service::on_timeout() noexcept {
  if (flight_file_) flight_file_->write(waits_, "worker", monotonic_now());
}

expected<moetier_model_info> service::info() {
  transport::snapshot_ptr newest = link_->newest();
  if (newest == nullptr) newest = first_;
  const auto& model = newest->model;
  moetier_model_info info{};
  info.hidden_size = model.hidden_size;
  info.intermediate_size = model.intermediate_size;
  info.experts = model.experts;
  info.top_k = model.top_k;
  info.layers_total = model.layers_total;
  info.moe_layer_count = static_cast<std::uint32_t>(layers_.size());
  info.moe_layers = layers_.data();
  info.fingerprint = model.fingerprint;
  info.epoch = newest->epoch.value;
  info.generation = newest->generation.value;
  info.workers = static_cast<std::uint32_t>(newest->workers.size());
  info.workers_live = live_workers(*newest);
  info.exact_allowed = newest->exact_allowed ? 1 : 0;
  info.routing_method = static_cast<std::uint32_t>(newest->routing.rule.method);
  info.router_columns = model.columns();
  info.shared_experts = newest->shared_experts;
  info.adapters = newest->lora ? 1 : 0;
  copy_text(info.model_type, model.model_type);
  copy_text(info.carrier, newest->carrier);
  copy_text(info.backend, newest->backend);
  return info;
}

expected<void> service::may_close() const {
  const std::scoped_lock lock(sessions_mutex_);
  if (sessions_.empty()) return {};
  return fail(reason::sequence, "service_close",
              fmt::format("{} of its sessions are open", sessions_.size()));
}

expected<transport::Communication*> service::carrier(const std::string& name) {
  const std::scoped_lock lock(carrier_mutex_);
  if (carrier_ == nullptr) {
    auto opened = world_.open_carrier(name);
    if (!opened) return unexpected_error(opened.error());
    carrier_ = std::move(*opened);
    carrier_name_ = name;
  }
  if (carrier_name_ != name) {
    return fail(reason::carrier_unavailable, name,
                fmt::format("this service's sessions use {}", carrier_name_));
  }
  return carrier_.get();
}

void service::enter(session& s) {
  const std::scoped_lock lock(sessions_mutex_);
  sessions_.push_back(&s);
}

void service::leave(session& s) noexcept {
  const std::scoped_lock lock(sessions_mutex_);
  std::erase(sessions_, &s);
}

void service::hear(client::link_event event, session_id which) noexcept {
  const std::scoped_lock lock(sessions_mutex_);
  for (session* s : sessions_) {
    if (event == client::link_event::session_lost && s->id() != which) continue;
    s->hear(event);
  }
}

}  // namespace moetier::abi
