#pragma once
// Bounds of the data plane that only this folder sets. Everything a peer can make grow is held
// against one of them; a value at the limit works, limit + 1 is refused. Thread: any.

#include <cstddef>
#include <cstdint>

namespace moetier::transport {

inline constexpr std::uint32_t k_banks_min = 2;  // exchanges of one pair that are open at once
inline constexpr std::uint32_t k_banks_max = 4;
inline constexpr std::uint32_t k_pairs_max = 4096;            // peers of one half
inline constexpr std::uint32_t k_rows_max = 65536;            // rows of one exchange
inline constexpr std::uint32_t k_row_bytes_max = 1u << 20;    // one row, all payloads
inline constexpr std::uint32_t k_return_rows_max = 1u << 24;  // a status word holds 24 bits

}  // namespace moetier::transport
