#pragma once
// A random expert of any format in canonical bytes, for benches, and memory that begins on a cache
// line, as pages and workspaces must. Thread: any.

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/backend.hpp"

namespace moetier::cli {

class aligned_bytes final {
 public:
  explicit aligned_bytes(std::size_t bytes) : storage_(bytes + k_alignment), bytes_(bytes) {}
  std::byte* data() noexcept {
    const auto at = reinterpret_cast<std::uintptr_t>(storage_.data());
    return storage_.data() + (k_alignment - at % k_alignment) % k_alignment;
  }
  std::span<std::byte> span() noexcept { return {data(), bytes_}; }

 private:
  static constexpr std::size_t k_alignment = 64;
  std::vector<std::byte> storage_;
  std::size_t bytes_;
};

struct random_expert {
  std::vector<std::byte> gate, up, down;
  std::vector<float> gate_bias, up_bias, down_bias;
  activation_constants constants;

  kernels::expert_tensors tensors() const {
    return {gate, up, down, gate_bias, up_bias, down_bias, constants};
  }
};

// Weights of a size that keeps a row's. reason::invalid_shape where H or I does not fit the format.
expected<random_expert> make_random_expert(const kernels::expert_shape& shape, std::uint64_t seed);

// Normal values: a period of 65521, which no row length divides.
std::vector<float> random_values(std::size_t count, float scale, std::uint64_t seed);

}  // namespace moetier::cli
