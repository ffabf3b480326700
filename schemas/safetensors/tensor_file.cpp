#include "schemas/safetensors/tensor_file.hpp"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "schemas/base/assert.hpp"

namespace moetier {
namespace {

constexpr std::uint64_t k_length_bytes = 8;  // the header's length, little-endian, opens the file

std::uint64_t little_endian_64(const std::array<std::byte, k_length_bytes>& bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;)
    value = (value << 8) | static_cast<std::uint64_t>(bytes[i]);
  return value;
}

}  // namespace

tensor_file::tensor_file(std::unique_ptr<input_file> file, tensor_header header,
                         sha256_digest digest, std::uint64_t data_begin)
    : file_(std::move(file)),
      header_(std::move(header)),
      header_digest_(digest),
      data_begin_(data_begin) {}

expected<std::unique_ptr<tensor_file>> tensor_file::open(std::string name) {
  auto file = input_file::open(std::move(name));
  if (!file) return unexpected_error(std::move(file.error()));
  const std::uint64_t size = (*file)->size();
  if (size < k_length_bytes)
    return fail(reason::file_malformed, (*file)->name(),
                fmt::format("it has {} bytes, too few for a header", size));
  std::array<std::byte, k_length_bytes> length{};
  if (auto done = (*file)->read(0, length); !done) return unexpected_error(std::move(done.error()));
  const std::uint64_t header_bytes = little_endian_64(length);
  if (header_bytes > k_safetensors_header_bytes_max)
    return fail(reason::limit_exceeded, fmt::format("the header of {} in bytes", (*file)->name()),
                header_bytes, k_safetensors_header_bytes_max);
  if (header_bytes > size - k_length_bytes)
    return fail(reason::file_malformed, (*file)->name(),
                fmt::format("its header of {} bytes does not fit in {}", header_bytes, size));

  std::string text(static_cast<std::size_t>(header_bytes), '\0');
  const auto text_bytes = std::as_writable_bytes(std::span(text));
  if (auto done = (*file)->read(k_length_bytes, text_bytes); !done)
    return unexpected_error(std::move(done.error()));
  const std::uint64_t data_begin = k_length_bytes + header_bytes;
  auto header = parse_tensor_header(text, size - data_begin, (*file)->name());
  if (!header) return unexpected_error(std::move(header.error()));
  return std::unique_ptr<tensor_file>(
      new tensor_file(std::move(*file), std::move(*header), sha256(text_bytes), data_begin));
}

expected<void> tensor_file::read(const tensor_info& tensor, std::span<std::byte> into) const {
  MOETIER_ASSERT(into.size() == tensor.bytes());
  return read_part(tensor, 0, into);
}

expected<void> tensor_file::read_part(const tensor_info& tensor, std::uint64_t offset,
                                      std::span<std::byte> into) const {
  MOETIER_ASSERT(tensor.end <= file_->size() - data_begin_);
  MOETIER_ASSERT(offset <= tensor.bytes() && into.size() <= tensor.bytes() - offset);
  return file_->read(data_begin_ + tensor.begin + offset, into);
}

expected<std::uint64_t> tensor_file::sample() const {
  constexpr std::uint64_t k_blocks = 16;
  constexpr std::uint64_t k_block_bytes = 4096;
  const std::uint64_t bytes = size() - data_begin_;
  std::vector<std::byte> blocks(std::min(bytes, k_blocks * k_block_bytes));
  if (bytes <= blocks.size()) {
    if (auto ok = file_->read(data_begin_, blocks); !ok) return unexpected_error(ok.error());
    return xxh3_64(blocks);
  }
  const std::uint64_t stride = (bytes - k_block_bytes) / (k_blocks - 1);
  for (std::uint64_t i = 0; i < k_blocks; ++i) {
    const auto block = std::span(blocks).subspan(i * k_block_bytes, k_block_bytes);
    if (auto ok = file_->read(data_begin_ + i * stride, block); !ok)
      return unexpected_error(ok.error());
  }
  return xxh3_64(blocks);
}

}  // namespace moetier
