#pragma once
// The safetensors files of one model directory: model.safetensors alone, or the shards that
// model.safetensors.index.json names. All headers are read and must agree with the index, tensor by
// tensor, before anything is served. Shard names are plain names, so an index reaches no file
// outside its directory. Owned by whoever opened it.
// Thread: any, after open(); several threads may read at once.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "schemas/base/error.hpp"
#include "schemas/safetensors/tensor_file.hpp"

namespace moetier {

struct tensor_place {
  const tensor_file* file = nullptr;
  const tensor_info* tensor = nullptr;
};

class shard_set final {
 public:
  static expected<std::unique_ptr<shard_set>> open(const std::string& directory);

  // The tensors of all shards, ascending by name; no name stands twice.
  std::span<const tensor_place> tensors() const noexcept { return tensors_; }
  // tensor == nullptr when there is none of that name.
  tensor_place find(std::string_view name) const noexcept;

  // First 64 bits of SHA-256 over every shard's name, size and header: two directories with
  // different files are told apart before a tensor is read. It does not cover the tensors' bytes.
  std::uint64_t digest() const noexcept { return digest_; }

 private:
  shard_set(std::vector<std::unique_ptr<tensor_file>> shards, std::uint64_t digest);

  std::vector<std::unique_ptr<tensor_file>> shards_;  // ascending by name
  std::vector<tensor_place> tensors_;
  std::uint64_t digest_;
};

}  // namespace moetier
