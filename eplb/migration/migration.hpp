#pragma once
// The order in which a new plan's experts travel, from where, and how long it takes. Experts
// without a live replica come first, then sole replicas of draining workers, then layers by gain
// per byte. In each round a worker receives one copy and sends one at most, so that nobody has two
// while another idles. Thread: any (a pure function).

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "eplb/migration/slot_copy.hpp"

namespace moetier::eplb {

// Where bytes come from, nearest first.
enum class copy_path : std::uint8_t { same_worker, nvlink, host_cache, network, disk };
inline constexpr std::size_t k_copy_paths = 5;
std::string_view copy_path_name(copy_path p) noexcept;

enum class copy_urgency : std::uint8_t { no_live_replica, sole_on_draining, balance };

struct migration_input {
  const slot_layout* layout = nullptr;
  std::span<const std::vector<std::int32_t>> from;  // [layer][slot]
  std::span<const std::vector<std::int32_t>> to;
  std::span<const double> gain{};               // by layer: what its moves win; empty = all alike
  std::span<const std::uint32_t> node{};        // by worker; empty = one node
  std::span<const std::uint8_t> live{};         // by worker; empty = all
  std::span<const std::uint8_t> draining{};     // by worker; empty = none
  std::span<const std::uint8_t> cached_node{};  // by node: its host cache has every expert
  std::uint64_t blob_bytes = 0;                 // of one expert
  // Bytes per second of each path; same_worker is free.
  std::array<double, k_copy_paths> bytes_per_s{0, 150e9, 20e9, 5e9, 1e9};
};

struct planned_copy {
  slot_copy copy;
  copy_urgency urgency = copy_urgency::balance;
  copy_path path = copy_path::network;
  std::int32_t source = -1;  // worker that sends; -1 = cache or disk
  std::uint32_t round = 0;
};

struct migration {
  std::vector<planned_copy> copies;                 // in order
  std::array<std::uint64_t, k_copy_paths> bytes{};  // same_worker: 0
  std::uint32_t rounds = 0;
  double predicted_s = 0;  // when the last copy ends
};

// Requires: every worker of a copy is live.
migration plan_migration(const migration_input& in);

}  // namespace moetier::eplb
