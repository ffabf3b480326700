// What racecheck follows of an mbarrier hand-over, so that its reports on the two-GEMM kernels can
// be read: a warp writes 32 words of shared memory, another reads them behind the barrier. With
// every lane arriving racecheck says nothing; with __syncwarp() and one lane arriving, which orders
// the same accesses, it reports a race. The kernels hand over the second way, once a stage.
//
//   compute-sanitizer --tool racecheck kernels_handover_probe all | one
//
// Ends with 0 when the words arrived, 77 without a device.
#include <cstdio>
#include <cstring>

#include "kernels/cuda/sm90_ptx.cuh"

namespace ptx = moetier::kernels::cuda::ptx;

template <bool EveryLaneArrives>
__global__ void hand_over(int* out) {
  __shared__ int words[32];
  __shared__ std::uint64_t full;
  const std::uint32_t lane = threadIdx.x % 32;
  if (threadIdx.x == 0) ptx::barrier_init(ptx::shared_address(&full), EveryLaneArrives ? 32 : 1);
  __syncthreads();
  if (threadIdx.x < 32) {
    words[lane] = static_cast<int>(lane) + 1;
    if constexpr (!EveryLaneArrives) __syncwarp();
    if (EveryLaneArrives || lane == 0) ptx::arrive(ptx::shared_address(&full));
  } else {
    ptx::wait(ptx::shared_address(&full), 0);
    out[lane] = words[31 - lane];
  }
}

int main(int argc, char** argv) {
  int* out = nullptr;
  int seen[32] = {};
  if (cudaMalloc(&out, sizeof seen) != cudaSuccess) {
    std::puts("NO CUDA DEVICE");
    return 77;
  }
  if (argc > 1 && std::strcmp(argv[1], "one") == 0) {
    hand_over<false><<<1, 64>>>(out);
  } else {
    hand_over<true><<<1, 64>>>(out);
  }
  if (cudaMemcpy(seen, out, sizeof seen, cudaMemcpyDeviceToHost) != cudaSuccess) return 1;
  int wrong = 0;
  for (int i = 0; i < 32; ++i) wrong += seen[i] != 32 - i;
  std::printf("%d words wrong\n", wrong);
  cudaFree(out);
  return wrong == 0 ? 0 : 1;
}
