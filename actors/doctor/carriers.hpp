#pragma once
// How rows would travel: whether the carrier opens; of UCX which lanes it takes inside this host
// and which kinds of memory it knows; and NCCL. The worst fault here is a silent one: everything
// works and every row goes through the kernel's TCP. Thread: any (values, pure functions); the
// probes load libraries.

#include <optional>
#include <string>
#include <vector>

#include "actors/doctor/finding.hpp"

namespace moetier::doctor {

struct carrier_facts {
  std::string refusal;               // why it does not open; empty = it does
  std::string description{};         // its own
  std::string version{};             // UCX's, "1.13.1"; empty = it is another carrier
  std::vector<std::string> lanes{};  // "sysv/memory", "tcp/lo"
  std::string variables{};           // UCX_* of the environment
  bool cuda_memory = false;          // a module for it is there
};

// From UCX's own description: "UCX 1.13.1; lanes inside this host: a, b; variables: c".
carrier_facts read_description(const std::string& description);

struct carrier_wish {
  std::string name;  // "ucx"
  std::string listen;
  bool allow_tcp = true;
};
carrier_facts probe_carrier(const carrier_wish& wish);

// carrier, carrier_lanes, carrier_memory.
findings judge_carrier(const carrier_facts& f, bool gpu_wanted);

// The version, 22703 = 2.27.3; nullopt = there is none.
std::optional<int> probe_nccl();
finding judge_nccl(std::optional<int> version);

}  // namespace moetier::doctor
