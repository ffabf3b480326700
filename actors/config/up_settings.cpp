#include "actors/config/up_settings.hpp"

#include <fmt/core.h>

#include "actors/config/endpoint.hpp"
#include "actors/config/key_table.hpp"

namespace moetier::config {
namespace {

constexpr std::string_view k_free_port = "127.0.0.1:0";
constexpr std::string_view k_default = "default";
constexpr std::string_view k_set_by_up = "set by up for each worker";

std::string& origin_of(loaded& l, std::string_view key) {
  return l.origins[static_cast<std::size_t>(find_key(key) - key_table().data())];
}

}  // namespace

up_settings up_settings_of(loaded given) {
  up_settings s{.tier = std::move(given), .ignored = {}, .workers_given = false};
  const auto unless_given = [&s](std::string_view key, std::string& at, std::string_view value,
                                 std::string_view origin) {
    std::string& told = origin_of(s.tier, key);
    if (told != k_default) return;
    at = value;
    told = origin;
  };
  auto& coordinator = s.tier.values.coordinator;
  unless_given("coordinator.control_listen", coordinator.control_listen, k_free_port,
               "default of up: a free port");
  unless_given("http.listen", s.tier.values.http.listen, k_free_port,
               "default of up: a free port each");
  unless_given("coordinator.state_dir", coordinator.state_dir, "",
               "default of up: a temporary directory, removed at its end");
  unless_given("coordinator.when_infeasible", coordinator.when_infeasible, "end",
               "default of up: no other worker will come");
  for (const std::string_view key : {"worker.coordinator", "worker.name"}) {
    std::string& told = origin_of(s.tier, key);
    if (told != k_default) {
      s.ignored.push_back(fmt::format("{} ({})", key, told));
      told += "; ignored by up, which sets it for each worker";
    } else {
      told = k_set_by_up;
    }
  }
  // A lone worker's defaults hold for nobody here: no port is shown that nobody uses.
  auto& worker = s.tier.values.worker;
  if (origin_of(s.tier, "worker.coordinator") == k_set_by_up) worker.coordinator.clear();
  if (origin_of(s.tier, "worker.name") == k_set_by_up) worker.name.clear();
  std::string& workers = origin_of(s.tier, "coordinator.workers");
  s.workers_given = workers != k_default;
  if (!s.workers_given && !coordinator.placement.empty()) workers += "; the plan file decides";
  return s;
}

expected<std::uint32_t> workers_of_plan(const up_settings& s, std::size_t planned) {
  const auto& coordinator = s.tier.values.coordinator;
  if (s.workers_given && coordinator.workers != planned) {
    return fail(reason::config_invalid, "coordinator.workers", coordinator.workers,
                fmt::format("{}, as the plan file {} has it, or not given", planned,
                            coordinator.placement));
  }
  return static_cast<std::uint32_t>(planned);
}

expected<std::string> worker_http_listen(const settings& s, std::uint32_t number) {
  endpoint at = *parse_endpoint(s.http.listen);
  if (at.port == 0) return endpoint_text(at);
  if (number >= 65535U - at.port) {
    return fail(reason::config_invalid, "http.listen", fmt::format("'{}'", s.http.listen),
                "port 0, or one with a port behind it for each worker");
  }
  at.port = static_cast<std::uint16_t>(at.port + 1 + number);
  return endpoint_text(at);
}

}  // namespace moetier::config
