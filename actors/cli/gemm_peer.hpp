#pragma once
// What another library's matrix product must offer to stand beside ours in `bench kernels`: a C
// interface that a module exports under k_gemm_peer_symbol. The bench loads it where it is found,
// so the product links no such library. One product is out [rows, outputs] = in [rows, depth] times
// a matrix [outputs, depth] in f32, packed before as the library likes it, on one thread.
// Thread: owner.

#include <cstddef>
#include <cstdint>

extern "C" {

struct moetier_gemm_peer {
  std::uint32_t version;  // k_gemm_peer_version
  const char* (*name)();  // "oneDNN 2.6.3"
  // Forms of the same product that the library has; the bench takes the faster one.
  std::uint32_t (*forms)();
  const char* (*form_name)(std::uint32_t form);
  // nullptr where the library cannot.
  void* (*open)(std::uint32_t form, std::uint32_t rows, std::uint32_t outputs, std::uint32_t depth);
  std::size_t (*packed_bytes)(void* product);
  void (*pack)(void* product, const float* matrix, void* packed);
  void (*run)(void* product, const void* packed, const float* in, float* out);
  void (*close)(void* product);
};
}

namespace moetier::cli {

inline constexpr std::uint32_t k_gemm_peer_version = 1;
inline constexpr const char* k_gemm_peer_symbol = "moetier_bench_gemm_peer";
inline constexpr const char* k_gemm_peer_file = "libmoetier_bench_onednn.so";

}  // namespace moetier::cli
