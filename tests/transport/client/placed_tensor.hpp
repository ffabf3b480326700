#pragma once
// A tensor with rows at a pitch, in host memory or on a device of the stand-in driver, with poison
// around its rows and between them, and a look at what stands there afterwards.

#include <cstring>
#include <vector>

#include "tests/transport/client/fake_driver.hpp"
#include "tests/transport/client/toy_service.hpp"

namespace moetier::client::toy {

inline constexpr int k_host = -1;
inline constexpr DLDataType k_dl_f16{kDLFloat, 16, 1};
inline constexpr DLDataType k_dl_u8{kDLUInt, 8, 1};

// Rows side by side, as they are given and read.
struct dense_rows {
  std::vector<std::byte> bytes;
  std::int64_t rows = 0;
  std::int64_t width = 0;
  DLDataType type{};
  int dims = 2;
};

template <class T>
dense_rows dense(const std::vector<T>& data, std::int64_t rows, std::int64_t width, DLDataType type,
                 int dims = 2) {
  dense_rows made{.bytes = {}, .rows = rows, .width = width, .type = type, .dims = dims};
  made.bytes.resize(data.size() * sizeof(T));
  if (!data.empty()) std::memcpy(made.bytes.data(), data.data(), made.bytes.size());
  return made;
}

class placed_tensor {
 public:
  struct layout {
    int device = 0;            // or k_host
    std::int64_t gap = 0;      // elements between one row's end and the next row
    std::uint64_t offset = 0;  // byte_offset
  };

  placed_tensor(const dense_rows& rows, layout where)
      : rows_(rows), row_bytes_(static_cast<std::size_t>(rows.width) * rows.type.bits / 8) {
    pitch_ = row_bytes_ + static_cast<std::size_t>(where.gap) * rows.type.bits / 8;
    start_ = k_margin + where.offset;
    const std::size_t extent =
        rows.rows == 0 ? 0 : static_cast<std::size_t>(rows.rows - 1) * pitch_ + row_bytes_;
    memory_.assign(start_ + extent + k_margin, k_poison);
    for (std::size_t r = 0; r < static_cast<std::size_t>(rows.rows); ++r) {
      std::memcpy(row(r), rows.bytes.data() + r * row_bytes_, row_bytes_);
    }
    if (where.device >= 0) fake_add_memory(where.device, row(0), extent);
    shape_[0] = rows.rows;
    shape_[1] = rows.width;
    strides_[0] = rows.width + where.gap;
    strides_[1] = 1;
    dl.data = memory_.data() + k_margin;
    dl.byte_offset = where.offset;
    dl.device = {where.device < 0 ? kDLCPU : kDLCUDA, std::max(0, where.device)};
    dl.ndim = rows.dims;
    dl.dtype = rows.type;
    dl.shape = shape_;
    dl.strides = strides_;
  }
  placed_tensor(const placed_tensor&) = delete;

  std::vector<std::byte>& memory() { return memory_; }  // rows, gaps and margins
  std::byte* row(std::size_t r) { return memory_.data() + start_ + r * pitch_; }

  template <class T>
  std::vector<T> read() {
    std::vector<T> all(rows_.bytes.size() / sizeof(T));
    for (std::size_t r = 0; r < static_cast<std::size_t>(rows_.rows); ++r) {
      std::memcpy(reinterpret_cast<std::byte*>(all.data()) + r * row_bytes_, row(r), row_bytes_);
    }
    return all;
  }
  std::vector<std::byte> bytes() { return read<std::byte>(); }

  bool has_poison_around_rows() {
    std::vector<std::byte> rest = memory_;
    for (std::size_t r = 0; r < static_cast<std::size_t>(rows_.rows); ++r) {
      std::memset(rest.data() + start_ + r * pitch_, static_cast<int>(k_poison), row_bytes_);
    }
    return std::all_of(rest.begin(), rest.end(), [](std::byte b) { return b == k_poison; });
  }

  DLTensor dl{};

 private:
  static constexpr std::size_t k_margin = 64;
  static constexpr std::byte k_poison{0xee};

  dense_rows rows_;
  std::size_t row_bytes_;
  std::size_t pitch_ = 0;
  std::size_t start_ = 0;
  std::vector<std::byte> memory_;
  std::int64_t shape_[2] = {};
  std::int64_t strides_[2] = {};
};

// A call by ids and weights, and its result, all at one place.
struct placed_call {
  inputs in;
  placed_tensor hidden, ids, weights, output;
  moetier_call call = sized<moetier_call>();
  moetier_result result = sized<moetier_result>();

  placed_call(const tier_shape& shape, std::uint32_t tokens, unsigned seed,
              placed_tensor::layout where = {})
      : in(shape, tokens, seed),
        hidden(dense(in.hidden, tokens, shape.hidden_size, k_dl_f32), where),
        ids(dense(in.ids, tokens, shape.top_k, k_dl_i32), where),
        weights(dense(in.weights, tokens, shape.top_k, k_dl_f32), where),
        output(
            dense(std::vector<float>(in.hidden.size(), -7.0F), tokens, shape.hidden_size, k_dl_f32),
            where) {
    call.layer = 2;
    call.hidden = &hidden.dl;
    call.ids = &ids.dl;
    call.weights = &weights.dl;
    result.output = &output.dl;
  }
};

}  // namespace moetier::client::toy
