#include "schemas/base/checksum.hpp"

#include <cstring>

#include <openssl/sha.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace moetier {
namespace {

constexpr std::array<std::uint32_t, 256> make_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t c = i;
    for (int bit = 0; bit < 8; ++bit) c = (c & 1u) != 0 ? (c >> 1) ^ 0x82f63b78u : c >> 1;
    table[i] = c;
  }
  return table;
}
constexpr auto k_table = make_table();

std::uint32_t crc_portable(const std::byte* p, std::size_t n, std::uint32_t crc) noexcept {
  for (std::size_t i = 0; i < n; ++i)
    crc = k_table[(crc ^ static_cast<std::uint32_t>(p[i])) & 0xffu] ^ (crc >> 8);
  return crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) std::uint32_t crc_sse42(const std::byte* p, std::size_t n,
                                                          std::uint32_t crc) noexcept {
  std::uint64_t c = crc;
  for (; n >= 8; n -= 8, p += 8) {
    std::uint64_t word;
    std::memcpy(&word, p, 8);
    c = __builtin_ia32_crc32di(c, word);
  }
  auto c32 = static_cast<std::uint32_t>(c);
  for (; n > 0; --n, ++p) c32 = __builtin_ia32_crc32qi(c32, static_cast<std::uint8_t>(*p));
  return c32;
}
#endif

}  // namespace

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t seed) noexcept {
#if defined(__x86_64__)
  static const bool has_sse42 = __builtin_cpu_supports("sse4.2") != 0;
  if (has_sse42) return ~crc_sse42(bytes.data(), bytes.size(), ~seed);
#endif
  return ~crc_portable(bytes.data(), bytes.size(), ~seed);
}

std::uint64_t xxh3_64(std::span<const std::byte> bytes) noexcept {
  return XXH3_64bits(bytes.data(), bytes.size());
}

sha256_digest sha256(std::span<const std::byte> bytes) {
  sha256_digest digest{};
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(),
         reinterpret_cast<unsigned char*>(digest.data()));
  return digest;
}

std::uint64_t first_64_bits(const sha256_digest& digest) noexcept {
  std::uint64_t v = 0;
  for (int i = 7; i >= 0; --i)
    v = (v << 8) | static_cast<std::uint64_t>(digest[static_cast<std::size_t>(i)]);
  return v;
}

}  // namespace moetier
