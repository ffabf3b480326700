#pragma once
// CPU ceilings: what one core can do at most, as probes that a bench runs beside its samples: the
// rate of fma without memory, and the rate of reading memory as one or several streams. Nothing but
// benches calls them. Thread: any (constants).

#include <cstddef>

namespace moetier::kernels {

struct cpu_ceiling_probes {
  // Floating-point operations of one call.
  double (*fma)(std::size_t rounds);
  // Reads `bytes` as 1 or 4 streams that lie bytes / streams apart. Requires: aligned to 64 bytes;
  // bytes is a multiple of k_read_probe_bytes.
  void (*read_1)(const std::byte* from, std::size_t bytes);
  void (*read_4)(const std::byte* from, std::size_t bytes);
};

inline constexpr std::size_t k_read_probe_bytes = 512;

extern const cpu_ceiling_probes k_cpu_ceiling_probes_avx2;

}  // namespace moetier::kernels
