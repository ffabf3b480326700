#pragma once
// The tier's checksums: CRC32C (Castagnoli) for frames and rows inside a host, XXH3-64 for the
// bytes of an expert, SHA-256 for shards and plans. Thread: any.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace moetier {

// CRC32C of `bytes`, continued from `seed` (0 = start). "123456789" gives E3069283.
std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t seed = 0) noexcept;

std::uint64_t xxh3_64(std::span<const std::byte> bytes) noexcept;

using sha256_digest = std::array<std::byte, 32>;
sha256_digest sha256(std::span<const std::byte> bytes);

// The first 8 bytes of a digest as a little-endian number: how plan hashes travel on the wire.
std::uint64_t first_64_bits(const sha256_digest& digest) noexcept;

}  // namespace moetier
