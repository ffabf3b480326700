#pragma once
// What every launcher of kernels/cuda returns and is told of the device. CUDA's own types stay in
// .cu files: a stream is the pointer behind cudaStream_t, an error its number.
//
// Thread: any (values).

#include <cstdint>

namespace moetier::kernels::cuda {

// Of one launch: 0, or the cudaError_t that it gave; k_refused where the arguments did not fit the
// plan, before anything was enqueued.
struct launch_status {
  static constexpr int k_refused = -1;
  int error = 0;
  bool ok() const noexcept { return error == 0; }
};

// The limits that launch plans depend on; read once by the owner of the device.
struct device_size {
  std::uint32_t multiprocessors = 132;
  std::uint32_t shared_bytes_max = 232448;  // of one block, opted in
};

}  // namespace moetier::kernels::cuda
