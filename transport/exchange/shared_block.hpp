#pragma once
// A block of memory that other processes of this host can map while its owner lives, and keep
// mapped for as long as they like: an anonymous file, so nothing is left behind by whoever is
// killed. Its name is the owner's process and descriptor; 128 random bits in its first bytes tell a
// stranger that has taken over the numbers. The file cannot be cut short: reading it never ends in
// a signal. Zero at first; pages are real once they are touched. Owned by who made or opened it.
// Thread: owner; the bytes belong to whom the protocol on them names.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "schemas/base/error.hpp"
#include "schemas/file/descriptor.hpp"

namespace moetier::transport {

struct block_name {
  std::uint32_t process = 0;
  std::int32_t fd = -1;
  std::array<std::uint64_t, 2> token{};
};

class shared_block final {
 public:
  static constexpr std::size_t k_token_bytes = 16;  // at its beginning

  // Requires: bytes > k_token_bytes.
  static expected<std::unique_ptr<shared_block>> make(std::size_t bytes);
  // Another's, or one's own. It has the size that its owner gave it.
  static expected<std::unique_ptr<shared_block>> open(const block_name& name);
  ~shared_block();
  shared_block(const shared_block&) = delete;
  shared_block& operator=(const shared_block&) = delete;

  const block_name& name() const noexcept { return name_; }
  // Not in a child that was forked later: what it ends there is still its parent's.
  bool is_own() const noexcept;
  std::span<std::byte> bytes() const noexcept { return bytes_; }
  void leak() noexcept { bytes_ = {}; }  // never unmap

 private:
  shared_block(const block_name& name, std::span<std::byte> bytes, int fd) noexcept
      : name_(name), bytes_(bytes), fd_(fd) {}

  block_name name_;
  std::span<std::byte> bytes_;
  descriptor fd_;  // of the owner's; none where it was opened
};

}  // namespace moetier::transport
