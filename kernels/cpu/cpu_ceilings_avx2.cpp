// Built for AVX2 and FMA; everything but the table has internal linkage (see CMakeLists.txt).
#include <immintrin.h>

#include "kernels/cpu/cpu_ceilings.hpp"

namespace moetier::kernels {
namespace {

// Twelve chains hide the latency of fma on every processor that has two such units.
constexpr unsigned k_chains = 12;
constexpr unsigned k_lanes = 8;

double fma_rounds(std::size_t rounds) {
  const double operations = 2.0 * k_chains * k_lanes * static_cast<double>(rounds);
  __m256 sums[k_chains] = {};
  const __m256 factor = _mm256_setzero_ps();
  for (; rounds != 0; --rounds) {
#pragma GCC unroll 12
    for (unsigned i = 0; i < k_chains; ++i)
      asm volatile("vfmadd231ps %[f], %[f], %[sum]" : [sum] "+x"(sums[i]) : [f] "x"(factor));
  }
  return operations;
}

// How far ahead each stream fetches: the best of 128 to 2048 bytes.
template <unsigned Streams>
inline constexpr std::size_t k_ahead_bytes = Streams == 1 ? 640 : 256;

template <unsigned Streams>
void read(const std::byte* from, std::size_t bytes) {
  constexpr std::size_t k_piece = 128;
  const std::size_t stream = bytes / Streams;
  __m256i any[4] = {};
  for (std::size_t at = 0; at < stream; at += k_piece) {
#pragma GCC unroll 4
    for (unsigned s = 0; s < Streams; ++s) {
      const std::byte* piece = from + s * stream + at;
      _mm_prefetch(reinterpret_cast<const char*>(piece + k_ahead_bytes<Streams>), _MM_HINT_T0);
      _mm_prefetch(reinterpret_cast<const char*>(piece + k_ahead_bytes<Streams> + 64), _MM_HINT_T0);
#pragma GCC unroll 4
      for (unsigned i = 0; i < 4; ++i)
        any[i] =
            _mm256_or_si256(any[i], _mm256_load_si256(reinterpret_cast<const __m256i*>(piece) + i));
    }
  }
  asm volatile("" ::"x"(any[0]), "x"(any[1]), "x"(any[2]), "x"(any[3]));
}

}  // namespace

constinit const cpu_ceiling_probes k_cpu_ceiling_probes_avx2 = {
    .fma = fma_rounds, .read_1 = read<1>, .read_4 = read<4>};

}  // namespace moetier::kernels
