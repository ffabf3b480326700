#pragma once
// What makes a process's name in the control plane: hardware addresses, the root file system's UUID
// in /etc/fstab, and the process id. Two containers with the host's network, no such line and the
// same process id would have one name. Thread: any (values, pure functions).

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "actors/doctor/finding.hpp"

namespace moetier::doctor {

struct identity_facts {
  std::optional<std::string> root_uuid;  // of a line "UUID=... / ..." in /etc/fstab
  std::uint32_t hardware_addresses = 0;  // that are not all zeros
  bool own_pid_namespace = false;        // process ids begin at 1 here: a container
};

identity_facts probe_identity(const std::filesystem::path& root);
finding judge_identity(const identity_facts& f);

}  // namespace moetier::doctor
