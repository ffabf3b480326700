#pragma once
// Whether the addresses that a tier would listen on are free. Thread: any (values, pure functions);
// the probe binds each address for a moment.

#include <string>
#include <vector>

#include "actors/config/endpoint.hpp"
#include "actors/doctor/finding.hpp"

namespace moetier::doctor {

struct port_facts {
  std::string setting;  // "coordinator.rpc_listen"
  std::string address;
  bool free_one = false;  // port 0: the system chooses
  int bind_error = 0;     // errno; EADDRINUSE, EADDRNOTAVAIL, EACCES
};

port_facts probe_port(std::string setting, const config::endpoint& at);
finding judge_port(const port_facts& f);

}  // namespace moetier::doctor
