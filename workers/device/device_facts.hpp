#pragma once
// What one CUDA device and this build's kernels for it are, read once when it is opened; the
// worker's environment is filled from it. Thread: any (a value).

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace moetier::workers {

struct device_facts {
  std::uint32_t ordinal = 0;
  std::string name;          // "NVIDIA H200"
  std::string architecture;  // "sm_90"
  std::uint64_t memory_bytes = 0;
  std::string driver{};  // "580.159.03"
  std::uint32_t multiprocessors = 0;
  std::uint32_t shared_bytes_max = 0;  // of one block, opted in
  // Of this build: ("cuda.ref", how its layout ids begin), ascending.
  std::vector<std::pair<std::string, std::string>> kernels{};

  bool operator==(const device_facts&) const = default;
};

}  // namespace moetier::workers
