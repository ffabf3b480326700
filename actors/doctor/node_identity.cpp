#include "actors/doctor/node_identity.hpp"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <system_error>

#include <fmt/core.h>

#include "actors/doctor/control_groups.hpp"

namespace moetier::doctor {
namespace {

// Whether the first process of this pid namespace is no init of a whole system.
bool first_process_is_a_program(const std::filesystem::path& root) {
  const auto name = first_line(root / "proc/1/comm");
  return name && *name != "systemd" && *name != "init";
}

}  // namespace

identity_facts probe_identity(const std::filesystem::path& root) {
  identity_facts f;
  std::ifstream table(root / "etc/fstab");
  for (std::string line; std::getline(table, line);) {
    std::istringstream words(line);
    std::string device, place;
    words >> device >> place;
    if (device.starts_with("UUID=") && place == "/") f.root_uuid = device.substr(5);
  }
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(root / "sys/class/net", none)) {
    const auto address = first_line(entry.path() / "address");
    if (address && address->find_first_not_of("0:") != std::string::npos) ++f.hardware_addresses;
  }
  f.own_pid_namespace = first_process_is_a_program(root);
  return f;
}

finding judge_identity(const identity_facts& f) {
  const std::string line =
      "let the container's start write a line of its own, e.g. `echo \"UUID=$(cat "
      "/proc/sys/kernel/random/uuid) / auto defaults 0 0\" >> /etc/fstab`";
  const std::string seen =
      fmt::format("{} hardware addresses, {}", f.hardware_addresses,
                  f.root_uuid ? "root UUID " + *f.root_uuid : "no root UUID in /etc/fstab");
  if (f.root_uuid) return pass("node_identity", seen);
  if (f.hardware_addresses == 0) {
    return failure("node_identity", seen + ": a process is told apart by its process id alone",
                   line);
  }
  if (f.own_pid_namespace) {
    return warn("node_identity",
                seen + ": containers that share the host's network and a process id have one name",
                line);
  }
  return pass("node_identity", seen);
}

}  // namespace moetier::doctor
