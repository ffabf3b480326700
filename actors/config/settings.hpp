#pragma once
// All settings of every role as plain values with their defaults: one file serves a whole tier, and
// each role reads the sections it needs. Filled by the loader, handed by reference to whoever main
// builds; nobody else reads files, environment or flags. A key is section.member. Thread: any
// (values).

#include <cstdint>
#include <string>
#include <vector>

#include "actors/config/quantity.hpp"
#include "schemas/base/limits.hpp"
#include "schemas/base/time.hpp"

namespace moetier::config {

struct settings {
  struct {
    std::string path;               // a Hugging Face model directory
    std::string nonfinite = "refuse";  // unquantised experts with NaN or infinity
    std::string quantise = "none";  // format in which unquantised experts are held
    struct {                        // texts; empty = as the family has it
      std::string method, scaling, epsilon, power, renormalise, groups, groups_kept;
    } routing;
  } model;
  struct {
    std::string rpc_listen = "127.0.0.1:7400";
    std::string control_listen = "127.0.0.1:7401";
    std::string state_dir = "/var/lib/moetier";
    std::string placement;      // plan file; empty = the default placement
    std::string when_infeasible = "wait";  // what a first plan that cannot be made does
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
    std::string carrier = "auto";
    std::string allow_tcp = "loopback";
    std::string checksum = "auto";          // over tcp
    duration_ns spin = 50 * k_microsecond;  // since the last useful progress, then sleep
    std::uint32_t max_workers = k_workers_max;
    std::uint32_t max_sources = k_sources_max;
  } transport;
  struct {
    bool enabled = true;
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
  } session;
  struct {
    std::uint32_t max = 2;
  } replay;
  struct {
    duration_ns decode = k_second;  // a CPU tier's; told to sessions that name none
  } deadline;
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
    std::string cert;
    std::string key;
    std::string ca;
  } security;
  struct {
    std::string level = "info";
  } log;
};

}  // namespace moetier::config
