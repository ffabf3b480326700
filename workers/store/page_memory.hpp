#pragma once
// (interface) The memory that a page pool stands on: one block whose address holds for its life, on
// the host or on a device. A page is written into a staging place and then lands where it belongs;
// on the host the two are one, on a device a copy lies between, and the next page may be staged
// while it is under way. It knows offsets and bytes, no pages and no states.
//
// Thread: owner of the pool; bytes at base(): any reader of pages that have landed.

#include <cstddef>
#include <memory>
#include <span>

#include "schemas/base/error.hpp"

namespace moetier::workers {

class page_memory {
 public:
  virtual ~page_memory() = default;

  // The block's first byte as the backend reads it, 64-byte aligned.
  virtual const std::byte* base() const noexcept = 0;

  // Where the bytes that belong at `offset` are written; 64-byte aligned. May wait for an earlier
  // page to land. Requires: what was staged before has been sent.
  virtual expected<std::span<std::byte>> stage(std::size_t offset, std::size_t bytes) = 0;
  // What was staged is whole and goes to its place; it must no longer be written.
  virtual expected<void> send() = 0;
  // How many of the newest sends may not have landed yet.
  virtual std::size_t under_way() const noexcept = 0;
  // Waits until all have. After an error nothing is under way and what was sent is void.
  virtual expected<void> settle() = 0;
};

// (interface) Makes the memory of one pool; what it costs is billed and refused before.
class page_memory_maker {
 public:
  virtual ~page_memory_maker() = default;

  // Whether pages take the memory in which the store stages experts, so that one limit holds both.
  virtual bool on_host() const noexcept = 0;
  // reason::memory_insufficient when the system refuses. Requires: bytes > 0, page_bytes is a
  // multiple of 64.
  virtual expected<std::unique_ptr<page_memory>> make(std::size_t bytes,
                                                      std::size_t page_bytes) const = 0;
};

// Anonymous memory of this process, 2 MiB aligned and advised to huge pages.
class host_page_memory final : public page_memory {
 public:
  // nullptr when the system refuses. Requires: bytes is a multiple of 2 MiB.
  static std::unique_ptr<host_page_memory> map(std::size_t bytes);
  ~host_page_memory() override;
  host_page_memory(const host_page_memory&) = delete;
  host_page_memory& operator=(const host_page_memory&) = delete;

  const std::byte* base() const noexcept override { return base_; }
  expected<std::span<std::byte>> stage(std::size_t offset, std::size_t bytes) override;
  expected<void> send() override { return {}; }
  std::size_t under_way() const noexcept override { return 0; }
  expected<void> settle() override { return {}; }

 private:
  host_page_memory(std::byte* base, std::size_t bytes) : base_(base), bytes_(bytes) {}

  std::byte* base_;
  std::size_t bytes_;
};

class host_page_memory_maker final : public page_memory_maker {
 public:
  bool on_host() const noexcept override { return true; }
  expected<std::unique_ptr<page_memory>> make(std::size_t bytes,
                                              std::size_t page_bytes) const override;
};

}  // namespace moetier::workers
