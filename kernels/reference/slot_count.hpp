#pragma once
// The counting step of the grouping: how many entries ask each local slot. Here are the problem
// and the readable CPU twin; kernels/cuda has the device's version under the same signature, and
// tests compare the two. It counts only: sorting is a later step.
//
// Thread: engine (one call at a time per `counts`).

#include <cstdint>

namespace moetier::kernels {

inline constexpr std::uint32_t k_count_slots_max = 1024;  // per layer and worker

// Pointers are in the memory of whoever counts: the host's for the twin, the device's for CUDA.
struct slot_count_args {
  const std::int32_t* slots = nullptr;  // one local slot per entry; -1 = skipped
  std::uint32_t entry_count = 0;
  std::uint32_t* counts = nullptr;       // [slot_count], overwritten: entries that ask each slot
  std::uint32_t slot_count = 0;          // 1..k_count_slots_max
  std::uint32_t* bad_entries = nullptr;  // overwritten: entries outside [-1, slot_count)
  void* stream =
      nullptr;  // the device stream to enqueue on; the twin has none and is done on return
};

enum class slot_count_status : std::uint8_t {
  ok = 0,
  bad_problem = 1,   // a null pointer or a size out of bounds: nothing was touched
  device_error = 2,  // the device refused the launch: the outputs are void
};

// Whether `args` is a problem that every version accepts. Pure.
bool can_count(const slot_count_args& args) noexcept;

namespace reference {

slot_count_status count_slots(const slot_count_args& args) noexcept;

}  // namespace reference
}  // namespace moetier::kernels
