#include "actors/cli/tier_address.hpp"

#include <nlohmann/json.hpp>

namespace moetier::cli {
namespace {

bool is_local(const std::string& address) { return address.starts_with("unix:"); }

// "" where the tier tells of none.
std::string admin_socket_of(client::tier_link& link, duration_ns limit) {
  const auto text = link.document(client::admin_document::status, limit);
  if (!text) return {};
  const auto document = nlohmann::json::parse(*text, nullptr, false);
  if (!document.is_object()) return {};
  const auto path = document.find("admin_socket");
  return path != document.end() && path->is_string() ? path->get<std::string>() : std::string();
}

}  // namespace

reached reach(const std::string& address, const config::link_files& tls, duration_ns limit) {
  client::link_options options;
  if (!tls.cert.empty() && !is_local(address)) {
    options.tls = client::tls_wish{.files = {tls.cert, tls.key, tls.ca}};
  }
  return client::connect(address, limit, options);
}

reached reach_for_change(const command_line& line, duration_ns limit) {
  auto link = reach(line, limit);
  if (!link || is_local(line.address) || !line.tls.cert.empty()) return link;
  const std::string path = admin_socket_of(**link, limit);
  if (path.empty()) return link;  // its refusal says what is allowed
  auto local = reach("unix:" + path, {}, limit);
  return local ? std::move(local) : std::move(link);  // not ours to open: again its refusal
}

}  // namespace moetier::cli
