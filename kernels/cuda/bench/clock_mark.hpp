#pragma once
// Marks on the device's two clocks: cycles of each multiprocessor and nanoseconds. Two marks around
// some work tell at how many MHz it ran; the clock is read, never set. An empty launch is here too,
// for the gap between the nodes of a graph.
//
// Thread: engine (the owner of the stream).

#include <cstdint>
#include <span>

#include "kernels/cuda/launch.hpp"

namespace moetier::kernels::cuda::bench {

struct clock_reading {
  std::uint64_t cycles = 0;
  std::uint64_t ns = 0;
};
inline constexpr std::uint32_t k_clock_readings = 1024;  // by multiprocessor; 0 ns = not seen

// Requires: `readings` [k_clock_readings] in device memory, zeroed.
launch_status mark_clocks(clock_reading* readings, const device_size& device,
                          void* stream) noexcept;
launch_status launch_nothing(void* stream) noexcept;

// The median over the multiprocessors that both marks saw; 0 where none was.
double mhz_between(std::span<const clock_reading> before, std::span<const clock_reading> after);

}  // namespace moetier::kernels::cuda::bench
