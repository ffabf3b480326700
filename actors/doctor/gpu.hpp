#pragma once
// GPUs as far as the driver's library tells, which is looked for at run time: a machine without it
// has none, and says so. Thread: any (values, pure functions); the probe loads the driver.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "actors/doctor/finding.hpp"

namespace moetier::doctor {

struct gpu_device {
  std::string name;
  int major = 0, minor = 0;  // compute capability
  std::uint64_t memory_bytes = 0;
  std::string pci;               // "0000:1b:00.0"
  std::optional<int> numa_node;  // nullopt = unknown
  std::vector<bool> reaches;     // peer access, by device
};

struct gpu_facts {
  bool library = false;  // libcuda.so.1 loads and has what we call
  int init_error = 0;    // of cuInit
  int driver = 0;        // 13000 = CUDA 13.0
  std::vector<gpu_device> devices;
};

gpu_facts probe_gpus(const std::filesystem::path& root, const char* library = "libcuda.so.1");

struct gpu_wish {
  bool wanted = false;        // worker.device names CUDA
  std::int32_t ordinal = -1;  // -1 = any
  bool built = false;         // this build has CUDA kernels
  int toolkit_major = 0;      // that it was built with
};

// gpu, gpu_driver, gpu_peers.
findings judge_gpus(const gpu_facts& f, const gpu_wish& wish);

}  // namespace moetier::doctor
