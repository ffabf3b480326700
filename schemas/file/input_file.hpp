#pragma once
// A file that nobody trusts, opened for reading: a regular file, its size taken once, bytes copied
// out by pread. It is never mapped, so a file that is cut while in use is a typed error and not a
// signal. Texts name the file as the caller gave it. Whoever opens it owns it; the file itself is
// never written.
// Thread: any, after open().

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "schemas/base/error.hpp"

namespace moetier {

class input_file final {
 public:
  // reason::file_unreadable when it does not exist, may not be read or is no regular file.
  static expected<std::unique_ptr<input_file>> open(std::string name);
  // The whole of a small text file; reason::limit_exceeded above `bytes_max`, before a byte is
  // read.
  static expected<std::string> read_text(const std::string& name, std::size_t bytes_max);

  ~input_file();
  input_file(const input_file&) = delete;
  input_file& operator=(const input_file&) = delete;

  const std::string& name() const noexcept { return name_; }
  std::uint64_t size() const noexcept { return size_; }

  // Fills `into` from `offset`; reason::file_unreadable when the file ends first.
  expected<void> read(std::uint64_t offset, std::span<std::byte> into) const;

 private:
  input_file(std::string name, int descriptor, std::uint64_t size) noexcept;

  std::string name_;
  int descriptor_;
  std::uint64_t size_;  // bytes, when it was opened
};

}  // namespace moetier
