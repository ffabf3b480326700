#include "actors/doctor/network.hpp"

#include <algorithm>
#include <map>

#include <fmt/core.h>

namespace moetier::doctor {
namespace {

std::string speed_text(const nic_facts& n) {
  return n.mbps ? fmt::format("{} Gb/s", *n.mbps / 1000.0) : std::string("speed not told");
}

// Where rows cross the network, a link below 10 Gb/s takes longer than the experts.
constexpr std::uint32_t k_slow_mbps = 10'000;

finding judge_nics(const network_facts& f, bool loopback) {
  std::string list;
  bool any_up = false;
  std::uint32_t fastest = 0;
  bool any_silent = false;
  for (const nic_facts& n : f.nics) {
    if (!n.up) continue;
    any_up = true;
    any_silent = any_silent || !n.mbps;
    fastest = std::max(fastest, n.mbps.value_or(0));
    list += fmt::format("{}{} {} mtu {}", list.empty() ? "" : ", ", n.name, speed_text(n), n.mtu);
  }
  if (loopback) {
    return pass("nics", fmt::format("rows stay on this host (transport.listen); up: {}",
                                    list.empty() ? "none" : list));
  }
  if (!any_up) {
    return failure("nics", "no network device is up",
                   "bring one up (ip link set DEVICE up), or keep transport.listen on loopback");
  }
  if (!any_silent && fastest < k_slow_mbps) {
    return warn("nics", list + "; rows take longer on it than experts do",
                "use a network of 10 Gb/s or more for transport.listen");
  }
  return pass("nics", list);
}

// A port that runs below the fastest of its kind was trained down, or hangs on a worse cable.
finding judge_rates(const network_facts& f) {
  std::uint32_t nic_best = 0;
  std::uint32_t rdma_best = 0;
  std::size_t told = 0;
  for (const nic_facts& n : f.nics) {
    if (!n.physical || !n.up || !n.mbps) continue;
    nic_best = std::max(nic_best, *n.mbps);
    ++told;
  }
  for (const rdma_facts& r : f.rdma) {
    if (!r.active) continue;
    rdma_best = std::max(rdma_best, r.gbps);
    ++told;
  }
  if (told == 0) return skip("link_rate", "no device that is up tells its rate");
  std::string slow;
  const auto add = [&slow](const std::string& text) {
    slow += fmt::format("{}{}", slow.empty() ? "" : ", ", text);
  };
  for (const rdma_facts& r : f.rdma) {
    if (r.active && r.gbps < rdma_best) {
      add(fmt::format("{} port {} runs at {} of {} Gb/s", r.device, r.port, r.gbps, rdma_best));
    }
  }
  if (rdma_best == 0) {  // beside RDMA ports the others are for management
    for (const nic_facts& n : f.nics) {
      if (n.physical && n.up && n.mbps && *n.mbps < nic_best) {
        add(fmt::format("{} runs at {} of {} Gb/s", n.name, *n.mbps / 1000.0, nic_best / 1000.0));
      }
    }
  }
  if (slow.empty()) return pass("link_rate", fmt::format("{} links, all at their best", told));
  return warn("link_rate", slow,
              "check cable, transceiver and switch port, or leave the slow device out by "
              "UCX_NET_DEVICES");
}

finding judge_bonds(const network_facts& f) {
  std::string seen;
  std::string lost;
  std::string single;
  for (const nic_facts& n : f.nics) {
    if (n.bond_mode.empty()) continue;
    const std::string text = fmt::format("{} ({}, {} of {} members up)", n.name, n.bond_mode,
                                         n.bond_members_up.size(), n.bond_members.size());
    seen += fmt::format("{}{}", seen.empty() ? "" : ", ", text);
    if (n.bond_members_up.size() < n.bond_members.size() || n.bond_members.empty()) lost = text;
    if (n.bond_mode == "active-backup" && n.bond_members.size() > 1) single = text;
  }
  if (seen.empty()) return skip("bonds", "no bonded devices");
  if (!lost.empty()) {
    return warn("bonds", lost + " has lost members", "ip link show; mend or remove what is down");
  }
  if (!single.empty()) {
    return warn("bonds", single + " carries rows over one member only",
                "bond with 802.3ad, or give transport.listen a device of its own");
  }
  return pass("bonds", seen);
}

finding judge_rdma(const network_facts& f) {
  if (f.rdma.empty()) return skip("rdma", "no RDMA device; rows between hosts would take TCP");
  std::string active;
  std::string down;
  for (const rdma_facts& r : f.rdma) {
    std::string& into = r.active ? active : down;
    into += fmt::format("{}{} port {} ({})", into.empty() ? "" : ", ", r.device, r.port,
                        r.active ? fmt::format("{} Gb/s", r.gbps) : r.state);
  }
  const std::string remedy = "ibstat; start the subnet manager or the switch port";
  if (active.empty()) return failure("rdma", "no port is active: " + down, remedy);
  if (!down.empty()) return warn("rdma", active + "; not active: " + down, remedy);
  return pass("rdma", active);
}

}  // namespace

findings judge_network(const network_facts& f, bool listen_is_loopback) {
  return {judge_nics(f, listen_is_loopback), judge_rates(f), judge_bonds(f), judge_rdma(f)};
}

finding judge_gpu_nics(const network_facts& f, const std::vector<std::optional<int>>& gpu_nodes) {
  if (gpu_nodes.empty()) return skip("gpu_nics", "no GPU");
  std::string far;
  bool known = false;
  for (std::size_t gpu = 0; gpu < gpu_nodes.size(); ++gpu) {
    if (!gpu_nodes[gpu]) continue;
    known = true;
    const bool near = std::any_of(f.rdma.begin(), f.rdma.end(), [&](const rdma_facts& r) {
      return r.active && r.numa_node == gpu_nodes[gpu];
    });
    if (!near) far += fmt::format("{}{} (node {})", far.empty() ? "" : ", ", gpu, *gpu_nodes[gpu]);
  }
  if (f.rdma.empty()) return skip("gpu_nics", "no RDMA device to stand beside a GPU");
  if (!known) return skip("gpu_nics", "the machine does not tell on which memory nodes GPUs are");
  if (!far.empty()) {
    return warn("gpu_nics", "no active RDMA port on the memory node of GPU " + far,
                "use the GPUs beside a port first, or move the cards: rows of the others cross the "
                "socket link");
  }
  return pass("gpu_nics", "each GPU has an RDMA port on its memory node");
}

}  // namespace moetier::doctor
