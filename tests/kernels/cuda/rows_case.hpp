#pragma once
// Rows and what is made of them, in host memory at multiples of 16, for the tests of the gather and
// of the combine. Thread: owner.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "kernels/cuda/expert_gemm_args.hpp"
#include "schemas/base/dtype.hpp"

namespace moetier::kernels::cuda {

// Bytes at a multiple of 16.
class whole_bytes {
 public:
  explicit whole_bytes(std::size_t bytes, std::byte fill = std::byte{0xcc})
      : words_((bytes + 15) / 16, filled(fill)), bytes_(bytes) {}
  std::byte* data() noexcept { return words_.data()->bytes; }
  std::size_t size() const noexcept { return bytes_; }
  std::vector<std::byte> copy() { return {data(), data() + bytes_}; }

 private:
  struct alignas(16) word {
    std::byte bytes[16];
  };
  static word filled(std::byte fill) {
    word w;
    std::memset(w.bytes, std::to_integer<int>(fill), sizeof w.bytes);
    return w;
  }
  std::vector<word> words_;
  std::size_t bytes_;
};

inline void put_row(std::byte* at, bool bf16, const std::vector<float>& row) {
  for (std::size_t k = 0; k < row.size(); ++k) {
    const std::uint16_t bits = bf16_from_f32(row[k]);
    bf16 ? std::memcpy(at + k * 2, &bits, 2) : std::memcpy(at + k * 4, &row[k], 4);
  }
}

// Random rows of one type at a pitch that passes their end; the pad is NaN.
inline whole_bytes random_rows(std::uint32_t seed, std::uint32_t rows, std::uint32_t columns,
                               std::size_t pitch, bool bf16) {
  whole_bytes bytes(rows * pitch, std::byte{0xff});
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  for (std::uint32_t r = 0; r < rows; ++r) {
    std::vector<float> row(columns);
    for (float& x : row) x = normal(random);
    put_row(bytes.data() + r * pitch, bf16, row);
  }
  return bytes;
}

}  // namespace moetier::kernels::cuda
