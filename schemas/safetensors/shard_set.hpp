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
#include <vector>

#include "schemas/base/error.hpp"
#include "schemas/safetensors/tensor_file.hpp"

namespace moetier {

class shard_set final {
 public:
  static expected<std::unique_ptr<shard_set>> open(const std::string& directory);

  // In ascending order of their names. No tensor stands in two of them.
  std::span<const std::unique_ptr<tensor_file>> shards() const noexcept { return shards_; }

  // First 64 bits of SHA-256 over every shard's name, size and header: two directories with
  // different files are told apart before a tensor is read. It does not cover the tensors' bytes.
  std::uint64_t digest() const noexcept { return digest_; }

 private:
  shard_set(std::vector<std::unique_ptr<tensor_file>> shards, std::uint64_t digest);

  std::vector<std::unique_ptr<tensor_file>> shards_;
  std::uint64_t digest_;
};

}  // namespace moetier
