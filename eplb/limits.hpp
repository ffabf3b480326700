#pragma once
// Bounds of plans, beside those of schemas/base/limits.hpp. A value at a limit works; limit + 1 is
// a typed error that names it. Thread: any.

#include <cstdint>

namespace moetier::eplb {

// A plan may be made for more workers than one tier of this release takes.
inline constexpr std::uint32_t k_plan_workers_max = 1024;
inline constexpr std::uint64_t k_load_max = (std::uint64_t{1} << 63) - 1;  // of w_e * G

inline constexpr std::uint32_t k_window_steps = 64;
inline constexpr std::uint32_t k_sample_every_steps = 8;
inline constexpr std::uint32_t k_ring_samples = 12;  // 8 of the last full window, 4 of the running
inline constexpr std::uint32_t k_reports_live_max = 2;  // generations whose reports are taken

}  // namespace moetier::eplb
