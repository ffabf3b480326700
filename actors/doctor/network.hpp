#pragma once
// The machine's network devices: whether they are up, how fast they run beside their like, bonds,
// and RDMA ports. Thread: any (values, pure functions); the probe reads files below `root`.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "actors/doctor/finding.hpp"

namespace moetier::doctor {

struct nic_facts {
  std::string name;
  bool physical = false;              // a device stands behind it
  bool up = false;                    // operstate
  std::optional<std::uint32_t> mbps;  // nullopt = it does not say (virtual ones)
  std::uint32_t mtu = 0;
  std::optional<int> numa_node;  // nullopt = unknown, or only one
  std::string bond_mode;         // "802.3ad", "active-backup"; empty = no bond
  std::vector<std::string> bond_members;
  std::vector<std::string> bond_members_up;
};

struct rdma_facts {
  std::string device;  // "mlx5_0"
  std::uint32_t port = 1;
  bool active = false;
  std::uint32_t gbps = 0;
  std::string state{};  // "4: ACTIVE"
  std::optional<int> numa_node{};
};

struct network_facts {
  std::vector<nic_facts> nics;   // ascending by name, loopback left out
  std::vector<rdma_facts> rdma;  // ascending
};

network_facts probe_network(const std::filesystem::path& root);

// listen_is_loopback: transport.listen; then nothing of the network carries rows.
findings judge_network(const network_facts& f, bool listen_is_loopback);

// Whether each GPU has a network port on its own memory node. gpu_nodes: by GPU number, nullopt =
// unknown.
finding judge_gpu_nics(const network_facts& f, const std::vector<std::optional<int>>& gpu_nodes);

}  // namespace moetier::doctor
