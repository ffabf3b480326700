#include "actors/roles/listening.hpp"

#include <nlohmann/json.hpp>

namespace moetier::roles {

std::string to_line(const listening& l) {
  nlohmann::ordered_json j{{"schema", "moetier.listening/1"}, {"role", l.role}, {"pid", l.pid}};
  if (!l.name.empty()) j["name"] = l.name;
  if (!l.rpc.empty()) j["rpc"] = l.rpc;
  if (!l.admin.empty()) j["admin"] = l.admin;
  if (!l.control.empty()) j["control"] = l.control;
  if (!l.http.empty()) j["http"] = l.http;
  return j.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::optional<listening> listening_from(std::string_view line) {
  const auto j = nlohmann::json::parse(line, nullptr, false);
  if (!j.is_object()) return std::nullopt;
  try {
    if (j.value("schema", "") != "moetier.listening/1") return std::nullopt;
    return listening{.role = j.value("role", ""),
                     .name = j.value("name", ""),
                     .rpc = j.value("rpc", ""),
                     .admin = j.value("admin", ""),
                     .control = j.value("control", ""),
                     .http = j.value("http", ""),
                     .pid = j.value("pid", 0)};
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;  // a field of another type
  }
}

}  // namespace moetier::roles
