#pragma once
// Bounds of the files that the safetensors reader takes. A value at the limit works; one above it
// is a typed error. Thread: any.

#include <cstddef>
#include <cstdint>

namespace moetier {

inline constexpr std::uint64_t k_safetensors_header_bytes_max = 16 * 1024 * 1024;
inline constexpr std::size_t k_tensor_rank_max = 8;
inline constexpr std::size_t k_index_bytes_max = 32 * 1024 * 1024;
inline constexpr std::size_t k_index_values_max = 1 << 19;  // of one index, about its tensors
inline constexpr std::size_t k_shards_max = 512;

}  // namespace moetier
