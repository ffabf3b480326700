#include "kernels/cuda/bench/matrix_rate.hpp"

#include <dlfcn.h>

#if __has_include(<cublasLt.h>)
#include <cublasLt.h>
#define MOETIER_HAS_CUBLASLT_HEADER
#endif

#include "kernels/cuda/bench/random_page.hpp"

namespace moetier::kernels::cuda::bench {

#ifndef MOETIER_HAS_CUBLASLT_HEADER

matrix_rates measure_matrix_rates(bench_stream&) {
  return {.note = "built without cublasLt.h: no matrix rate"};
}

#else

namespace {

constexpr std::uint64_t k_side = 8192;
constexpr std::uint32_t k_calls = 10;
constexpr std::uint32_t k_repeats = 5;
constexpr std::size_t k_workspace_bytes = std::size_t{32} << 20;
constexpr double k_flops = 2.0 * k_side * k_side * k_side;

// The few functions that are used, by their declared types.
struct cublaslt {
  decltype(&cublasLtCreate) create = nullptr;
  decltype(&cublasLtDestroy) destroy = nullptr;
  decltype(&cublasLtMatmulDescCreate) describe = nullptr;
  decltype(&cublasLtMatmulDescSetAttribute) set = nullptr;
  decltype(&cublasLtMatrixLayoutCreate) layout = nullptr;
  decltype(&cublasLtMatmulPreferenceCreate) prefer = nullptr;
  decltype(&cublasLtMatmulPreferenceSetAttribute) prefer_set = nullptr;
  decltype(&cublasLtMatmulAlgoGetHeuristic) choose = nullptr;
  decltype(&cublasLtMatmul) multiply = nullptr;

  bool load(void* library) {
    const auto take = [&](auto& function, const char* name) {
      function = reinterpret_cast<std::decay_t<decltype(function)> >(::dlsym(library, name));
      return function != nullptr;
    };
    return take(create, "cublasLtCreate") && take(destroy, "cublasLtDestroy") &&
           take(describe, "cublasLtMatmulDescCreate") &&
           take(set, "cublasLtMatmulDescSetAttribute") &&
           take(layout, "cublasLtMatrixLayoutCreate") &&
           take(prefer, "cublasLtMatmulPreferenceCreate") &&
           take(prefer_set, "cublasLtMatmulPreferenceSetAttribute") &&
           take(choose, "cublasLtMatmulAlgoGetHeuristic") && take(multiply, "cublasLtMatmul");
  }
};

void* open_library() {
  for (const char* name : {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"})
    if (void* library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL)) return library;
  return nullptr;
}

// TF/s of C = A^T B, all three side x side, A and B of `type`; 0 where the library refuses.
double rate_of(bench_stream& stream, const cublaslt& lt, cublasLtHandle_t handle,
               cudaDataType_t type, const std::byte* a, const std::byte* b, std::byte* c,
               std::span<std::byte> workspace) {
  cublasLtMatmulDesc_t product = nullptr;
  cublasLtMatrixLayout_t in = nullptr;
  cublasLtMatrixLayout_t out = nullptr;
  cublasLtMatmulPreference_t preference = nullptr;
  const cublasOperation_t transposed = CUBLAS_OP_T;
  const std::size_t workspace_bytes = workspace.size();
  cublasLtMatmulHeuristicResult_t chosen{};
  int found = 0;
  // Descriptions of a few hundred bytes live until the process ends.
  const bool ready =
      lt.describe(&product, CUBLAS_COMPUTE_32F, CUDA_R_32F) == CUBLAS_STATUS_SUCCESS &&
      lt.set(product, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof transposed) ==
          CUBLAS_STATUS_SUCCESS &&
      lt.layout(&in, type, k_side, k_side, k_side) == CUBLAS_STATUS_SUCCESS &&
      lt.layout(&out, CUDA_R_16BF, k_side, k_side, k_side) == CUBLAS_STATUS_SUCCESS &&
      lt.prefer(&preference) == CUBLAS_STATUS_SUCCESS &&
      lt.prefer_set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace_bytes,
                    sizeof workspace_bytes) == CUBLAS_STATUS_SUCCESS &&
      lt.choose(handle, product, in, in, out, out, preference, 1, &chosen, &found) ==
          CUBLAS_STATUS_SUCCESS &&
      found == 1;
  if (!ready) return 0;
  const float one = 1;
  const float zero = 0;
  bool refused = false;
  const auto multiply = [&] {
    for (std::uint32_t i = 0; i < k_calls; ++i) {
      refused |= lt.multiply(handle, product, &one, a, in, b, in, &zero, c, out, c, out,
                             &chosen.algo, workspace.data(), workspace.size(),
                             static_cast<cudaStream_t>(stream.stream())) != CUBLAS_STATUS_SUCCESS;
    }
  };
  std::vector<double> times;
  for (std::uint32_t i = 0; i <= k_repeats; ++i) {
    const double us = stream.enqueue_us(multiply);
    if (i > 0) times.push_back(us / k_calls);
  }
  return refused || !stream.ok() ? 0 : k_flops / spread_of(std::move(times)).median / 1e6;
}

}  // namespace

matrix_rates measure_matrix_rates(bench_stream& stream) {
  void* library = open_library();
  cublaslt lt;
  cublasLtHandle_t handle = nullptr;
  if (library == nullptr || !lt.load(library) || lt.create(&handle) != CUBLAS_STATUS_SUCCESS)
    return {.note = "libcublasLt cannot be opened: no matrix rate"};
  const std::uint64_t elements = k_side * k_side;
  const device_block a = stream.allocate(elements * 2);
  const device_block b = stream.allocate(elements * 2);
  const device_block c = stream.allocate(elements * 2);
  const device_block workspace = stream.allocate(k_workspace_bytes);
  matrix_rates rates;
  if (stream.ok()) {
    stream.take(fill_rows(a.data(), elements, 1, stream.stream()));
    stream.take(fill_rows(b.data(), elements, 2, stream.stream()));
    rates.bf16_tf =
        rate_of(stream, lt, handle, CUDA_R_16BF, a.data(), b.data(), c.data(), workspace.span());
    stream.take(fill_codes(a.data(), elements, 3, stream.stream()));
    stream.take(fill_codes(b.data(), elements, 4, stream.stream()));
    rates.fp8_tf =
        rate_of(stream, lt, handle, CUDA_R_8F_E4M3, a.data(), b.data(), c.data(), workspace.span());
  }
  lt.destroy(handle);
  if (rates.bf16_tf == 0 || rates.fp8_tf == 0) rates.note = "libcublasLt refused a product";
  return rates;
}

#endif

}  // namespace moetier::kernels::cuda::bench
