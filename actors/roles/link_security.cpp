#include "actors/roles/link_security.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <fmt/core.h>

#include "transport/client/link/socket_address.hpp"
#include "transport/tls/process_policy.hpp"

namespace moetier::roles {
namespace {

constexpr std::int64_t k_day_s = 24 * 3600;
constexpr std::int64_t k_warned_before_s = 14 * k_day_s;

expected<tls::credential_ptr> load(const config::link_files& files, tls::role as,
                                   std::string_view link, event_log& log) {
  if (files.cert.empty()) return tls::credential_ptr();
  const std::int64_t now = tls::unix_now_s();
  auto loaded = tls::credential::load({files.cert, files.key, files.ca}, as, now);
  if (!loaded) return tl::unexpected(loaded.error());
  const std::int64_t left = (*loaded)->not_after_s() - now;
  const auto days = static_cast<std::uint64_t>(left / k_day_s);
  log.info("certificate", {{"link", link}, {"name", (*loaded)->common_name()}, {"days", days}});
  if (left < k_warned_before_s) {
    log.warn("certificate_ends_soon", {{"link", link}, {"days", days}});
  }
  return loaded;
}

}  // namespace

expected<link_security> load_coordinator_security(const config::settings& s, event_log& log) {
  link_security made;
  auto rpc = load(s.security.rpc, tls::role::server, "rpc", log);
  if (!rpc) return tl::unexpected(rpc.error());
  made.rpc = std::move(*rpc);
  auto control = load(s.security.control, tls::role::both, "control", log);
  if (!control) return tl::unexpected(control.error());
  made.control = std::move(*control);
  if (made.rpc != nullptr && made.control != nullptr && made.rpc->shares_authority(*made.control)) {
    // A client's certificate would open the actor link, where everybody is trusted with code.
    return fail(reason::config_invalid, "security.control.ca",
                fmt::format("'{}', by whose key security.rpc.ca signs too", s.security.control.ca),
                "an authority of its own");
  }
  return made;
}

expected<link_security> load_worker_security(const config::settings& s, event_log& log) {
  auto control = load(s.security.control, tls::role::both, "control", log);
  if (!control) return tl::unexpected(control.error());
  return link_security{.rpc = nullptr, .control = std::move(*control)};
}

expected<tls::credential_ptr> reload_rpc(const config::settings& s, event_log& log) {
  return load(s.security.rpc, tls::role::server, "rpc", log);
}

expected<std::string> admin_socket_path(const config::settings& s, event_log& log) {
  const std::string& wish = s.coordinator.admin_socket;
  if (wish == "off") return std::string();
  if (wish != "auto") return wish;
  std::string path = s.coordinator.state_dir + "/admin.sock";
  if (path.size() <= client::k_unix_path_bytes_max) return path;
  log.warn("no_admin_socket",
           {{"why", "the state directory's path is too long for one"},
            {"remedy", "coordinator.admin_socket with a path of at most 107 bytes"}});
  return std::string();
}

expected<void> check_model_folder(const std::string& path) {
  struct stat about {};
  if (::stat(path.c_str(), &about) != 0) return {};  // whoever reads it says what lacks
  // A group of ours is trusted as we are: with a umask of 002 everything is its to write.
  const bool by_group = (about.st_mode & S_IWGRP) != 0 && about.st_gid != ::getegid();
  const bool by_all = (about.st_mode & S_IWOTH) != 0;
  if (!by_group && !by_all) return {};
  return fail(
      reason::config_invalid, "model.path",
      fmt::format("'{}', which others may write (mode {:04o})", path, about.st_mode & 07777),
      fmt::format("a directory that is not theirs (chmod {} it)", by_all ? "o-w" : "g-w"));
}

}  // namespace moetier::roles
