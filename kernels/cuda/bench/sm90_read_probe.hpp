#pragma once
// The read probe as the host sees it: reads FC1's, then FC2's bytes of some slots from their pages
// by bulk copies and computes nothing. The time of an expert layer that is bound by its weights is
// held against this one's, from the same pages in the same run.
//
// Thread: engine (the owner of the stream).

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/launch.hpp"

namespace moetier::kernels::cuda::bench {

struct read_probe_args {
  const std::byte* const* pages = nullptr;  // [slots]; device memory, as all pointers here
  const std::uint32_t* active = nullptr;    // [0] = how many slots, then their numbers
  std::uint64_t fc1 = 0;                    // byte of the page where the matrix begins
  std::uint64_t fc1_tiles = 0;              // of 16 KB
  std::uint64_t fc2 = 0;
  std::uint64_t fc2_tiles = 0;
  std::uint32_t* sink = nullptr;  // [blocks]: keeps the reads alive
};

launch_status read_pages(const read_probe_args& args, const device_size& device,
                         void* stream) noexcept;

}  // namespace moetier::kernels::cuda::bench
