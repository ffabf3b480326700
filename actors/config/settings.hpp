#pragma once
// All settings of every role as plain values with their defaults: one file serves a whole tier, and
// each role reads the sections it needs. Filled by the loader, handed by reference to whoever main
// builds; nobody else reads files, environment or flags. A key is section.member. Thread: any
// (values).

#include <cstdint>
#include <string>
#include <vector>

#include "actors/config/quantity.hpp"
#include "schemas/base/deadline_class.hpp"
#include "schemas/base/limits.hpp"
#include "schemas/base/time.hpp"

namespace moetier::config {

// One of tenants[]: a name and what its sessions may ask for. 0 = no limit.
struct tenant_settings {
  std::string match = "*";
  std::uint32_t weight = 1;
  deadline_class highest = deadline_class::decode;
  std::uint32_t sessions = k_sessions_max;
  std::uint64_t tokens_in_flight = 0;
  std::uint64_t tokens_per_second = 0;
  std::vector<std::string> models;  // empty = all
};

// Files of one link's identity, PEM; all set, or none.
struct link_files {
  std::string cert, key, ca;
};

struct settings {
  struct {
    std::string path;                  // a Hugging Face model directory
    std::string nonfinite = "refuse";  // unquantised experts with NaN or infinity
    std::string quantise = "none";     // format in which unquantised experts are held
    struct {                           // texts; empty = as the family has it
      std::string method, scaling, epsilon, power, renormalise, groups, groups_kept;
    } routing;
  } model;
  struct {
    std::string rpc_listen = "127.0.0.1:7400";
    std::string control_listen = "127.0.0.1:7401";
    std::string state_dir = "/var/lib/moetier";
    std::string admin_socket = "auto";           // in the state directory; "off" = none
    std::string placement;                       // plan file; empty = the default placement
    std::string when_infeasible = "wait";        // what a first plan that cannot be made does
    duration_ns load_timeout = 3600 * k_second;  // of all weights that a plan gives a worker
    std::uint32_t workers = 1;  // the first placement waits for so many; a plan file overrides it
  } coordinator;
  struct {
    std::string coordinator = "127.0.0.1:7401";  // its control address
    std::string name = "worker@1";  // how a restarted worker finds its place again; @N adds N to
                                    // http.listen's port
    std::string device = "auto";
    std::uint32_t slots = 0;   // per layer; 0 = as the partition gives
    std::uint64_t memory = 0;  // bytes for weights; 0 = what the machine has
    std::uint32_t spare_pages = 8;
    std::uint32_t threads = 1;  // of the compute pool
  } worker;
  struct {
    std::string listen = "127.0.0.1:7402";
  } http;
  struct {
    std::string listen = "127.0.0.1";
    std::string carrier = "auto";  // carrier_of() says which
    std::string allow_tcp = "loopback";
    std::string checksum = "auto";          // over tcp
    duration_ns spin = 50 * k_microsecond;  // since the last useful progress, then sleep
    std::uint32_t max_workers = k_workers_max;
    std::uint32_t max_sources = k_sources_max;
  } transport;
  struct {
    bool enabled = true;
    std::uint64_t memory = 256ULL << 20;  // bytes of thin calls, rows and answers, held at once
  } gateway;
  struct {
    std::string force = "auto";
    bool allow_degradation = true;
  } backend;
  struct {
    std::string return_mode = "partial";
    std::string shared_experts = "auto";
    std::string lora = "off";
  } moe;
  struct {
    duration_ns lease = k_second;
    std::uint32_t max = k_sessions_max;
    std::uint32_t max_tokens = k_tokens_max;
    std::uint32_t max_micro_batches = k_micro_batches_max;
    std::uint64_t bank_memory = 4ULL << 30;  // bytes of one session's banks at one worker
  } session;
  struct {
    std::uint32_t max = 2;
  } replay;
  struct {
    duration_ns decode = k_second;  // a CPU tier's; told to sessions that name none
    duration_ns prefill = 2 * k_second;
    duration_ns step = 60 * k_second;  // a CPU tier's; also of a batch call
  } deadline;
  std::vector<tenant_settings> tenants;  // empty = one that is open to all
  struct {
    duration_ns heartbeat = 100 * k_millisecond;
    duration_ns timeout = 500 * k_millisecond;
  } detect;
  struct {
    duration_ns timeout = 4 * k_second;  // what is in flight gets so long after SIGTERM
  } drain;
  struct {
    restart_budget budget;
  } restart;
  struct {
    // One authority for each zone: whoever it vouches for is let in there and nowhere else.
    link_files rpc;              // clients and the coordinator
    link_files control;          // workers and the coordinator
    std::string administrators;  // common names, by commas: who may change the tier over TLS
    std::string insecure;        // rpc, http: listen beyond loopback in the clear
  } security;
  struct {
    std::string level = "info";
  } log;
};

// What transport::open_carrier() takes: rows stay on one host, where memory that both ends map is
// the fastest, and no peer holds up another.
inline std::string carrier_of(const settings& s) {
  return s.transport.carrier == "auto" ? "shared_memory" : s.transport.carrier;
}

}  // namespace moetier::config
