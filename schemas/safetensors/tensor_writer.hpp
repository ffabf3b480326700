#pragma once
// Writes one safetensors file: to a temporary name in the same folder, synced, then renamed, so
// that a reader sees the old file or the whole new one, never a part. It owns nothing between
// calls. Thread: any.

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "schemas/base/error.hpp"
#include "schemas/safetensors/tensor_info.hpp"

namespace moetier {

struct tensor_to_write {
  std::string name;
  dtype element = dtype::f32;
  std::vector<std::uint64_t> shape;
  std::span<const std::byte> bytes;
};

// Tensors land widest element first, so that every one is aligned to its element.
// reason::invalid_argument for a doubled or reserved name, or text that is no UTF-8; invalid_shape
// when bytes and shape disagree; file_unwritable names the file. Unless the last step, the sync of
// the folder, is what fails, `path` is untouched on an error.
expected<void> write_tensors(const std::string& path, std::span<const tensor_to_write> tensors,
                             std::span<const std::pair<std::string, std::string>> metadata = {});

}  // namespace moetier
