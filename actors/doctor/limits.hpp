#pragma once
// What the system grants a process: locked memory, open files, shared memory. Thread: any (values,
// pure functions).

#include <cstdint>
#include <optional>
#include <string>

#include "actors/doctor/finding.hpp"

namespace moetier::doctor {

inline constexpr std::uint64_t k_unlimited = ~std::uint64_t{0};

struct memlock_facts {
  std::uint64_t limit_bytes = 0;  // k_unlimited
  bool may_exceed = false;        // CAP_IPC_LOCK
  bool registers = false;  // something here registers memory: an RDMA device, or a GPU worker
};
memlock_facts probe_memlock();
finding judge_memlock(const memlock_facts& f);

// Requires: limit of RLIMIT_NOFILE.
std::uint64_t probe_open_files();
finding judge_open_files(std::uint64_t limit);

struct shm_facts {
  bool there = false;
  bool writable = false;   // by this user
  std::uint32_t mode = 0;  // permission bits
  std::uint64_t free_bytes = 0;
  std::uint64_t size_bytes = 0;
};
shm_facts probe_shm(const std::string& folder = "/dev/shm");
// members: processes of the tier on this machine that exchange rows.
finding judge_shm(const shm_facts& f, std::uint32_t members);

}  // namespace moetier::doctor
