#pragma once
// Untyped device memory for tests of whole layers: values up, values down, poison.
// Thread: owner.

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstring>
#include <span>
#include <vector>

namespace moetier::kernels::cuda {

class device_bytes final {
 public:
  explicit device_bytes(std::size_t bytes, int poison = 0xff) : bytes_(bytes) {
    EXPECT_EQ(cudaMalloc(&data_, bytes == 0 ? 1 : bytes), cudaSuccess);
    EXPECT_EQ(cudaMemset(data_, poison, bytes), cudaSuccess);
  }
  template <class T>
  explicit device_bytes(const std::vector<T>& values) : device_bytes(values.size() * sizeof(T)) {
    EXPECT_EQ(cudaMemcpy(data_, values.data(), bytes_, cudaMemcpyHostToDevice), cudaSuccess);
  }
  ~device_bytes() { cudaFree(data_); }
  device_bytes(device_bytes&& other) noexcept : data_(other.data_), bytes_(other.bytes_) {
    other.data_ = nullptr;
  }
  device_bytes& operator=(device_bytes&&) = delete;

  template <class T = std::byte>
  T* as() const {
    return static_cast<T*>(data_);
  }
  std::span<std::byte> span() const { return {as<>(), bytes_}; }
  template <class T>
  std::vector<T> read() const {
    std::vector<T> values(bytes_ / sizeof(T));
    EXPECT_EQ(cudaMemcpy(values.data(), data_, bytes_, cudaMemcpyDeviceToHost), cudaSuccess);
    return values;
  }
  template <class T>
  void write(const std::vector<T>& values) {
    EXPECT_EQ(cudaMemcpy(data_, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice),
              cudaSuccess);
  }
  void poison(int byte) { EXPECT_EQ(cudaMemset(data_, byte, bytes_), cudaSuccess); }

 private:
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace moetier::kernels::cuda
