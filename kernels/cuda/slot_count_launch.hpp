#pragma once
// The launch configuration of the slot count: a pure function of the problem and the device's size,
// so that it is tested without a device. It never calls CUDA.
//
// Thread: any.

#include <algorithm>
#include <cstdint>

namespace moetier::kernels::cuda {

struct slot_count_launch {
  std::uint32_t blocks = 1;
  std::uint32_t threads = 256;
  std::uint32_t shared_bytes = 0;  // one counter per slot

  bool operator==(const slot_count_launch&) const = default;
};

inline constexpr std::uint32_t k_slot_count_threads = 256;
// A block adds its whole table to the result once, so it must see enough entries to pay for that.
inline constexpr std::uint32_t k_slot_count_entries_per_thread = 16;

// Requires: multiprocessors >= 1.
constexpr slot_count_launch plan_slot_count(std::uint32_t entry_count, std::uint32_t slot_count,
                                            std::uint32_t multiprocessors) noexcept {
  constexpr std::uint64_t per_block =
      std::uint64_t{k_slot_count_threads} * k_slot_count_entries_per_thread;
  const std::uint64_t wanted = (entry_count + per_block - 1) / per_block;
  const std::uint64_t most = std::uint64_t{multiprocessors} * 2;
  return {
      .blocks = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(wanted, 1, most)),
      .threads = k_slot_count_threads,
      .shared_bytes = slot_count * static_cast<std::uint32_t>(sizeof(std::uint32_t)),
  };
}

}  // namespace moetier::kernels::cuda
