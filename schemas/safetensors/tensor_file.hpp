#pragma once
// One safetensors file, opened for reading: its checked header, and tensors copied out by pread.
// It is owned by whoever opened it (a shard set, the command line) and never writes.
// Thread: any, after open(); several threads may read at once.

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "schemas/base/checksum.hpp"
#include "schemas/base/error.hpp"
#include "schemas/file/input_file.hpp"
#include "schemas/safetensors/tensor_header.hpp"

namespace moetier {

class tensor_file final {
 public:
  // reason::file_unreadable, file_malformed or limit_exceeded, naming the file as `name` does.
  static expected<std::unique_ptr<tensor_file>> open(std::string name);

  const std::string& name() const noexcept { return file_->name(); }
  std::uint64_t size() const noexcept { return file_->size(); }
  const tensor_header& header() const noexcept { return header_; }
  const sha256_digest& header_digest() const noexcept { return header_digest_; }

  // XXH3-64 of up to 16 blocks of 4 KiB, spread evenly over the tensors' bytes: two trainings of one
  // model have equal headers, but differ here.
  expected<std::uint64_t> sample() const;

  // The whole tensor. Requires: `tensor` is of this file's header, into.size() == tensor.bytes().
  expected<void> read(const tensor_info& tensor, std::span<std::byte> into) const;
  // into.size() bytes of it from `offset`. Requires: they are its bytes.
  expected<void> read_part(const tensor_info& tensor, std::uint64_t offset,
                           std::span<std::byte> into) const;

 private:
  tensor_file(std::unique_ptr<input_file> file, tensor_header header, sha256_digest digest,
              std::uint64_t data_begin);

  std::unique_ptr<input_file> file_;
  tensor_header header_;
  sha256_digest header_digest_;
  std::uint64_t data_begin_;  // offset of the data in the file
};

}  // namespace moetier
