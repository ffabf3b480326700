#include <algorithm>
#include <cstdlib>
#include <sstream>
#include <system_error>

#include "actors/doctor/control_groups.hpp"
#include "actors/doctor/network.hpp"

namespace moetier::doctor {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder, none)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::string> words_of(const std::optional<std::string>& line) {
  std::istringstream in(line.value_or(""));
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

std::optional<int> node_of(const fs::path& device) {
  const auto node = number_in(device / "numa_node");
  if (!node || *node < 0) return std::nullopt;
  return static_cast<int>(*node);
}

nic_facts read_nic(const fs::path& all, const std::string& name) {
  const fs::path here = all / name;
  nic_facts n;
  n.name = name;
  std::error_code none;
  n.physical = fs::exists(here / "device", none);
  const std::string state = first_line(here / "operstate").value_or("");
  const bool carrier = number_in(here / "carrier").value_or(0) == 1;
  n.up = state == "up" || (state == "unknown" && carrier);  // tunnels say "unknown"
  const auto speed = number_in(here / "speed");
  if (speed && *speed > 0) n.mbps = static_cast<std::uint32_t>(*speed);
  n.mtu = static_cast<std::uint32_t>(number_in(here / "mtu").value_or(0));
  n.numa_node = node_of(here / "device");
  const auto mode = words_of(first_line(here / "bonding/mode"));  // "802.3ad 4"
  if (mode.empty()) return n;
  n.bond_mode = mode.front();
  n.bond_members = words_of(first_line(here / "bonding/slaves"));
  for (const std::string& member : n.bond_members) {
    if (first_line(all / member / "operstate") == "up") n.bond_members_up.push_back(member);
  }
  return n;
}

}  // namespace

network_facts probe_network(const fs::path& root) {
  network_facts f;
  const fs::path nics = root / "sys/class/net";
  for (const std::string& name : names_in(nics)) {
    if (name != "lo" && fs::is_directory(nics / name)) f.nics.push_back(read_nic(nics, name));
  }
  const fs::path devices = root / "sys/class/infiniband";
  for (const std::string& device : names_in(devices)) {
    for (const std::string& port : names_in(devices / device / "ports")) {
      const fs::path here = devices / device / "ports" / port;
      rdma_facts r{.device = device};
      r.port = static_cast<std::uint32_t>(std::strtoul(port.c_str(), nullptr, 10));
      r.state = first_line(here / "state").value_or("unknown");
      r.active = r.state.find("ACTIVE") != std::string::npos;
      // "400 Gb/sec (4X NDR)"
      r.gbps = static_cast<std::uint32_t>(
          std::strtoul(first_line(here / "rate").value_or("0").c_str(), nullptr, 10));
      r.numa_node = node_of(devices / device / "device");
      f.rdma.push_back(std::move(r));
    }
  }
  return f;
}

}  // namespace moetier::doctor
