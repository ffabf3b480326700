#include "schemas/safetensors/tensor_writer.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <numeric>
#include <system_error>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "schemas/file/file_draft.hpp"
#include "schemas/file/printable.hpp"
#include "schemas/safetensors/limits.hpp"

namespace moetier {
namespace {

std::vector<std::size_t> widest_first(std::span<const tensor_to_write> tensors) {
  std::vector<std::size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return dtype_bytes(tensors[a].element) > dtype_bytes(tensors[b].element);
  });
  return order;
}

expected<void> check(const tensor_to_write& tensor) {
  const std::string name = printable(tensor.name);
  if (tensor.element == dtype::other)
    return fail(reason::invalid_dtype, name, dtype_name(tensor.element), "a named one");
  if (tensor.name == "__metadata__")
    return fail(reason::invalid_argument, "a tensor's name", name, "any other");
  std::uint64_t bytes = dtype_bytes(tensor.element);
  bool fits = tensor.shape.size() <= k_tensor_rank_max;
  for (const std::uint64_t size : tensor.shape)
    fits = fits && !__builtin_mul_overflow(bytes, size, &bytes);
  if (!fits || bytes != tensor.bytes.size())
    return fail(reason::invalid_shape, name,
                shape_text(tensor_type_of(tensor.element), tensor.shape),
                fmt::format("one of {} bytes", tensor.bytes.size()));
  return {};
}

expected<std::string> header_text(std::span<const tensor_to_write> tensors,
                                  std::span<const std::size_t> order,
                                  std::span<const std::pair<std::string, std::string>> metadata) {
  using json = nlohmann::ordered_json;
  json header = json::object();
  if (!metadata.empty()) {
    json& pairs = header["__metadata__"] = json::object();
    for (const auto& [key, value] : metadata) pairs[key] = value;
  }
  std::uint64_t at = 0;
  for (const std::size_t i : order) {
    const tensor_to_write& tensor = tensors[i];
    if (auto fine = check(tensor); !fine) return unexpected_error(std::move(fine.error()));
    if (header.contains(tensor.name))
      return fail(reason::invalid_argument, "a tensor's name", printable(tensor.name),
                  "one that no other tensor has");
    json& entry = header[tensor.name] = json::object();
    entry["dtype"] = std::string(tensor_type_of(tensor.element).name);
    entry["shape"] = tensor.shape;
    entry["data_offsets"] = json::array({at, at + tensor.bytes.size()});
    at += tensor.bytes.size();
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const json::type_error&) {
    return fail(reason::invalid_argument, "a name or metadata", "no UTF-8", "UTF-8");
  }
  text.append((8 - text.size() % 8) % 8, ' ');
  return text;
}

std::array<std::byte, 8> little_endian(std::uint64_t value) {
  std::array<std::byte, 8> bytes{};
  for (std::byte& b : bytes) {
    b = static_cast<std::byte>(value & 0xffu);
    value >>= 8;
  }
  return bytes;
}

}  // namespace

expected<void> write_tensors(const std::string& path, std::span<const tensor_to_write> tensors,
                             std::span<const std::pair<std::string, std::string>> metadata) {
  const std::vector<std::size_t> order = widest_first(tensors);
  auto text = header_text(tensors, order, metadata);
  if (!text) return unexpected_error(std::move(text.error()));
  if (text->size() > k_safetensors_header_bytes_max)
    // style: allow error_text: the caller's own file
    return fail(reason::limit_exceeded, fmt::format("the header of {} in bytes", path),
                text->size(), k_safetensors_header_bytes_max);

  if (const std::string_view obstacle = obstacle_at(path); !obstacle.empty())
    return fail(reason::file_unwritable, path, obstacle);

  file_draft file(path);
  bool done = file.create() && file.write(little_endian(text->size())) &&
              file.write(std::as_bytes(std::span(*text)));
  for (const std::size_t i : order) done = done && file.write(tensors[i].bytes);
  if (!done || !file.commit())
    return fail(reason::file_unwritable, path, std::generic_category().message(errno));
  return {};
}

}  // namespace moetier
