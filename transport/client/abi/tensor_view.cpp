#include "transport/client/abi/tensor_view.hpp"

#include <array>
#include <limits>
#include <string>

#include <fmt/core.h>

namespace moetier::abi {
namespace {

// A row may be this far from the next; keeps all address arithmetic inside 63 bits.
constexpr std::int64_t k_stride_max = std::int64_t{1} << 40;
constexpr std::int64_t k_rows_max = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t k_dims_shown = 8;

std::string shape_text(const DLTensor& t) {
  std::string text = "[";
  for (int i = 0; i < t.ndim && i < k_dims_shown; ++i) {
    text += fmt::format("{}{}", i == 0 ? "" : ", ", t.shape[i]);
  }
  return text + (t.ndim > k_dims_shown ? ", ...]" : "]");
}

dtype type_of(const DLDataType& t) noexcept {
  if (t.lanes != 1) return dtype::other;
  switch (t.code) {
    case kDLFloat: return t.bits == 32 ? dtype::f32 : t.bits == 16 ? dtype::f16 : dtype::other;
    case kDLBfloat: return t.bits == 16 ? dtype::bf16 : dtype::other;
    case kDLInt: return t.bits == 32 ? dtype::i32 : t.bits == 64 ? dtype::i64 : dtype::other;
    case kDLUInt: return t.bits == 8 ? dtype::u8 : t.bits == 32 ? dtype::u32 : dtype::other;
    default: return dtype::other;
  }
}

// "uint16", "float32x4": the name of a type that we do not read.
std::string type_text(const DLDataType& t) {
  constexpr std::array<std::string_view, 7> k_kinds{"int",    "uint",    "float", "opaque",
                                                    "bfloat", "complex", "bool"};
  const std::string kind = t.code < k_kinds.size() ? std::string(k_kinds[t.code])
                                                   : fmt::format("code {} of bits ", t.code);
  return fmt::format("{}{}{}", kind, t.bits, t.lanes == 1 ? "" : fmt::format("x{}", t.lanes));
}

// Pinned host memory is host memory.
expected<std::int32_t> place_of(const char* name, const DLDevice& device) {
  switch (device.device_type) {
    case kDLCPU:
    case kDLCUDAHost: return k_on_host;
    case kDLCUDA:
      if (device.device_id >= 0) return device.device_id;
      return fail(reason::invalid_argument, fmt::format("the device of {}", name), device.device_id,
                  "0 or more");
    default:
      return fail(reason::not_enabled,
                  fmt::format("{} on device type {}", name, static_cast<int>(device.device_type)));
  }
}

std::string place_text(std::int32_t device) {
  return device == k_on_host ? "in host memory" : fmt::format("on cuda:{}", device);
}

}  // namespace

expected<tensor_view> view_of(const char* name, const DLTensor* tensor, std::uint32_t width,
                              std::string_view allowed) {
  if (tensor == nullptr) return tensor_view{.type = dtype::f32, .width = width};
  const DLTensor& t = *tensor;
  const auto place = place_of(name, t.device);
  if (!place) return unexpected_error(place.error());
  const std::string due = fmt::format("[T, {}]", width);
  if (t.ndim != 2 || t.shape == nullptr) {
    return fail(
        reason::invalid_shape, name,
        t.shape == nullptr || t.ndim < 0 ? fmt::format("of {} dimensions", t.ndim) : shape_text(t),
        due);
  }
  if (t.shape[0] < 0 || t.shape[0] > k_rows_max || t.shape[1] != std::int64_t{width}) {
    return fail(reason::invalid_shape, name, shape_text(t), due);
  }
  tensor_view view{.type = type_of(t.dtype),
                   .rows = static_cast<std::uint32_t>(t.shape[0]),
                   .width = width,
                   .device = *place};
  if (view.type == dtype::other) {
    return fail(reason::invalid_dtype, name, type_text(t.dtype), allowed);
  }
  std::int64_t row_stride = width;
  if (t.strides != nullptr && view.rows > 0) {
    if (t.strides[1] != 1 && width > 1) {
      return fail(reason::invalid_argument, fmt::format("the last stride of {}", name),
                  t.strides[1], "1: elements of a row lie side by side");
    }
    row_stride = t.strides[0];
    if (view.rows > 1 && (row_stride < std::int64_t{width} || row_stride > k_stride_max)) {
      return fail(reason::invalid_argument, fmt::format("the row stride of {}", name), row_stride,
                  fmt::format("{} or more", width));
    }
    if (view.rows <= 1) row_stride = width;
  }
  view.pitch = static_cast<std::size_t>(row_stride) * dtype_bytes(view.type);
  if (view.rows > 0) {
    if (t.data == nullptr) {
      return fail(reason::invalid_argument, name, "null", fmt::format("data of {}", shape_text(t)));
    }
    view.data = static_cast<std::byte*>(t.data) + t.byte_offset;
    const std::size_t element = dtype_bytes(view.type);
    if (reinterpret_cast<std::uintptr_t>(view.data) % element != 0) {
      return fail(reason::invalid_argument, name, "misaligned",
                  fmt::format("rows aligned to {} bytes", element));
    }
  }
  return view;
}

expected<tensor_view> view_of(const char* name, const DLTensor* tensor, std::uint32_t rows,
                              std::uint32_t width, std::string_view allowed) {
  auto view = view_of(name, tensor, width, allowed);
  if (view && view->rows != rows) {
    return fail(reason::invalid_shape, name, fmt::format("[{}, {}]", view->rows, width),
                fmt::format("[{}, {}]", rows, width));
  }
  return view;
}

expected<tensor_view> vector_of(const char* name, const DLTensor* tensor, std::uint32_t rows,
                                std::string_view allowed) {
  if (tensor == nullptr || tensor->ndim != 1 || tensor->shape == nullptr) {
    return fail(reason::invalid_shape, name,
                tensor == nullptr || tensor->shape == nullptr || tensor->ndim < 0
                    ? std::string("nothing")
                    : shape_text(*tensor),
                fmt::format("[{}]", rows));
  }
  if (tensor->shape[0] != std::int64_t{rows})
    return fail(reason::invalid_shape, name, shape_text(*tensor), fmt::format("[{}]", rows));
  std::int64_t shape[2] = {tensor->shape[0], 1};
  std::int64_t strides[2] = {tensor->strides == nullptr ? 1 : tensor->strides[0], 1};
  DLTensor column = *tensor;
  column.ndim = 2;
  column.shape = shape;
  column.strides = strides;
  return view_of(name, &column, 1, allowed);
}

expected<void> shared_place::join(const char* joining, const tensor_view& view) {
  if (!view.given()) return {};
  if (device == k_nowhere) *this = {joining, view.device};
  if (view.device == device) return {};
  return fail(reason::invalid_argument, joining, place_text(view.device),
              fmt::format("{}, as {}", place_text(device), name));
}

}  // namespace moetier::abi
