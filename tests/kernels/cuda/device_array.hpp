#pragma once
// What the tests of device kernels share: arrays in device memory that free themselves, and a
// fixture that skips where there is no device. Thread: owner.

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "kernels/cuda/launch.hpp"

namespace moetier::kernels::cuda {

template <class T>
struct device_free {
  void operator()(T* p) const { cudaFree(p); }
};
template <class T>
using device_array = std::unique_ptr<T[], device_free<T>>;

// Never null, even for no elements.
template <class T>
device_array<T> on_device(const std::vector<T>& values) {
  void* p = nullptr;
  const std::size_t bytes = values.size() * sizeof(T);
  EXPECT_EQ(cudaMalloc(&p, bytes == 0 ? 16 : bytes), cudaSuccess);
  EXPECT_EQ(cudaMemcpy(p, values.data(), bytes, cudaMemcpyHostToDevice), cudaSuccess);
  return device_array<T>(static_cast<T*>(p));
}

template <class T>
std::vector<T> on_host(const device_array<T>& values, std::size_t count) {
  std::vector<T> out(count);
  EXPECT_EQ(cudaMemcpy(out.data(), values.get(), count * sizeof(T), cudaMemcpyDeviceToHost),
            cudaSuccess);
  return out;
}

class device_test : public ::testing::Test {
 protected:
  void SetUp() override {
    int devices = 0;
    const cudaError_t found = cudaGetDeviceCount(&devices);
    if (found != cudaSuccess || devices == 0) {
      GTEST_SKIP() << "NO CUDA DEVICE, the kernel was compiled but not run: "
                   << cudaGetErrorString(found);
    }
    int multiprocessors = 0;
    ASSERT_EQ(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 0),
              cudaSuccess);
    size.multiprocessors = static_cast<std::uint32_t>(multiprocessors);
  }

  device_size size;
};

}  // namespace moetier::kernels::cuda
