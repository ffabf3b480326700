#include "transport/ucx/ucx_context.hpp"

#include <cstdlib>
#include <deque>

#include <fmt/core.h>
#include <sys/eventfd.h>

#include "schemas/file/descriptor.hpp"
#include "transport/exchange/limits.hpp"

namespace moetier::transport {
namespace {

bool is_loopback(const std::string& listen) {
  return listen.starts_with("127.") || listen == "::1" || listen == "localhost";
}

// What a context opens, some of it for a moment only. Where one lacks in the middle of that, the
// library ends the process by an assertion of its own.
constexpr std::size_t k_descriptors_min = 16;

bool has_descriptors() {
  std::deque<descriptor> taken;
  while (taken.size() < k_descriptors_min) {
    if (taken.emplace_back(::eventfd(0, EFD_CLOEXEC)).get() < 0) return false;
  }
  return true;
}

bool is_set_by_user(const std::string& name) {
  return std::getenv(("UCX_" + name).c_str()) != nullptr;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> ucx_settings(const carrier_options& options) {
  std::string transports = "posix,sysv,cma,self";
  if (options.allow_tcp) transports += ",tcp";
  std::vector<std::pair<std::string, std::string>> settings{
      // Without it shared memory carries no peer error mode, and everything falls back to tcp.
      {"MM_ERROR_HANDLING", "y"},
      {"KEEPALIVE_INTERVAL", "100ms"},
  };
  if (is_loopback(options.listen))
    settings.emplace_back("NET_DEVICES", "lo");
  else
    transports += ",rc,ud,dc";  // the library passes over what the host lacks
  settings.emplace_back("TLS", transports);
  return settings;
}

unexpected_error ucx_failure(const char* call, ucs_status_t status) {
  return fail(reason::carrier_unavailable, "ucx",
              fmt::format("{} ended with status {}", call, static_cast<int>(status)));
}

expected<std::unique_ptr<ucx_context>> ucx_context::make(const carrier_options& options,
                                                         ucs_thread_mode_t thread_mode,
                                                         const std::string& transports) {
  if (!has_descriptors()) {
    return fail(
        reason::carrier_unavailable, "ucx",
        fmt::format("fewer than {} file descriptors are free; raise their limit (ulimit -n)",
                    k_descriptors_min));
  }
  std::unique_ptr<ucx_context> self(new ucx_context());

  ucp_config_t* config = nullptr;
  if (const auto s = ucp_config_read(nullptr, nullptr, &config); s != UCS_OK)
    return ucx_failure("ucp_config_read", s);
  ucs_status_t status = UCS_OK;
  for (const auto& [name, value] : ucx_settings(options)) {
    if (status == UCS_OK && !is_set_by_user(name))
      status = ucp_config_modify(config, name.c_str(), value.c_str());
  }
  if (status == UCS_OK && !transports.empty())
    status = ucp_config_modify(config, "TLS", transports.c_str());
  if (status == UCS_OK) {
    ucp_params_t params{};
    params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_MT_WORKERS_SHARED;
    params.features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
    params.mt_workers_shared = 0;
    status = ucp_init(&params, config, &self->context_);
  }
  ucp_config_release(config);
  if (status != UCS_OK) return ucx_failure("ucp_init", status);

  ucp_worker_params_t worker_params{};
  worker_params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  worker_params.thread_mode = thread_mode;
  if (const auto s = ucp_worker_create(self->context_, &worker_params, &self->worker_); s != UCS_OK)
    return ucx_failure("ucp_worker_create", s);
  if (const auto s = ucp_worker_get_efd(self->worker_, &self->event_fd_); s != UCS_OK)
    return ucx_failure("ucp_worker_get_efd", s);

  ucp_address_t* address = nullptr;
  std::size_t address_bytes = 0;
  if (const auto s = ucp_worker_get_address(self->worker_, &address, &address_bytes); s != UCS_OK)
    return ucx_failure("ucp_worker_get_address", s);
  const auto* bytes = reinterpret_cast<const std::byte*>(address);
  self->address_.assign(bytes, bytes + address_bytes);
  ucp_worker_release_address(self->worker_, address);
  return self;
}

ucx_context::~ucx_context() {
  if (worker_ != nullptr) ucp_worker_destroy(worker_);
  if (context_ != nullptr) ucp_cleanup(context_);
}

}  // namespace moetier::transport
