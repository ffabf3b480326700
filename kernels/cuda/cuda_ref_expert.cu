#include "kernels/cuda/cuda_ref_expert.cuh"

#include <cuda_runtime_api.h>

namespace moetier::kernels::cuda {
namespace {

// body(ref_format<...>{}) for the format that a value names.
template <class Body>
void with_format(const weight_format& format, const Body& body) {
  using enum quant_kind;
  constexpr dtype k_unused = dtype::bf16;
  switch (format.quant) {
    case none:
      if (format.stored == dtype::f32) return body(ref_format<none, dtype::f32>{});
      if (format.stored == dtype::f16) return body(ref_format<none, dtype::f16>{});
      return body(ref_format<none, dtype::bf16>{});
    case fp8_tensor: return body(ref_format<fp8_tensor, k_unused>{});
    case fp8_block: return body(ref_format<fp8_block, k_unused>{});
    case mxfp8: return body(ref_format<mxfp8, k_unused>{});
    case mxfp4: return body(ref_format<mxfp4, k_unused>{});
    case nvfp4: return body(ref_format<nvfp4, k_unused>{});
    case int4_g128: return body(ref_format<int4_g128, k_unused>{});
  }
}

std::uint64_t entries_of(const ref_expert_args& args) {
  return std::uint64_t{args.rows_cap} * args.k_in;
}

}  // namespace

launch_status ref_check_slots(const ref_expert_args& args, void* stream) noexcept {
  ref_check_kernel<<<1, k_ref_threads, 0, static_cast<cudaStream_t>(stream)>>>(args);
  return {.error = cudaGetLastError()};
}

launch_status ref_fc1(const ref_expert_args& args, const device_size& device,
                      void* stream) noexcept {
  const std::uint32_t grid = plan_ref_grid(entries_of(args), args.page.up.out, device);
  with_format(args.page.format, [&]<class Format>(Format) {
    ref_fc1_kernel<Format><<<grid, k_ref_threads, 0, static_cast<cudaStream_t>(stream)>>>(args);
  });
  return {.error = cudaGetLastError()};
}

launch_status ref_fc2(const ref_expert_args& args, const device_size& device,
                      void* stream) noexcept {
  const std::uint32_t grid = plan_ref_grid(entries_of(args), args.page.down.out, device);
  with_format(args.page.format, [&]<class Format>(Format) {
    ref_fc2_kernel<Format><<<grid, k_ref_threads, 0, static_cast<cudaStream_t>(stream)>>>(args);
  });
  return {.error = cudaGetLastError()};
}

launch_status ref_combine(const ref_expert_args& args, const device_size& device,
                          void* stream) noexcept {
  const std::uint32_t grid = plan_ref_grid(args.rows_cap, k_ref_strip, device);
  ref_combine_kernel<<<grid, k_ref_threads, 0, static_cast<cudaStream_t>(stream)>>>(args);
  return {.error = cudaGetLastError()};
}

}  // namespace moetier::kernels::cuda
