#pragma once
// Pages in device memory: one block, filled through two pinned staging places by copies on the
// loader's own queue, so that the next page is packed while the one before is under way. The
// checksum of a page is that of its staged bytes; a page has landed when its copy is done.
// Thread: owner of the pool.

#include <array>
#include <memory>

#include "workers/device/device_queue.hpp"
#include "workers/store/page_memory.hpp"

namespace moetier::workers {

class staged_pages final : public page_memory {
 public:
  static constexpr std::size_t k_places = 2;
  static_assert(k_places <= k_marks_kept);

  // reason::memory_insufficient. The queue is the loader's, and nobody else's.
  static expected<std::unique_ptr<staged_pages>> create(std::unique_ptr<device_queue> queue,
                                                        std::size_t bytes, std::size_t page_bytes);
  ~staged_pages() override;
  staged_pages(const staged_pages&) = delete;
  staged_pages& operator=(const staged_pages&) = delete;

  const std::byte* base() const noexcept override { return block_.get(); }
  expected<std::span<std::byte>> stage(std::size_t offset, std::size_t bytes) override;
  expected<void> send() override;
  std::size_t under_way() const noexcept override;
  expected<void> settle() override;

 private:
  struct place {
    device_bytes bytes;
    std::uint64_t mark = 0;  // behind its newest copy; 0 = never sent
  };

  staged_pages(std::unique_ptr<device_queue> queue, device_bytes block,
               std::array<place, k_places> places, std::size_t bytes, std::size_t page_bytes);
  // Waits for the copy; after an error nothing is under way.
  expected<void> land(place& p);

  std::unique_ptr<device_queue> queue_;  // outlives the memory below
  device_bytes block_;
  std::array<place, k_places> places_;
  std::size_t bytes_;
  std::size_t page_bytes_;
  std::size_t next_ = 0;  // place of the next page, or of the one that is staged
  std::size_t offset_ = 0;
  std::size_t staged_ = 0;  // bytes; 0 = nothing is staged
};

// Makes them on one device.
class staged_pages_maker final : public page_memory_maker {
 public:
  using make_queue = std::function<expected<std::unique_ptr<device_queue>>()>;
  explicit staged_pages_maker(make_queue queues) : queues_(std::move(queues)) {}

  bool on_host() const noexcept override { return false; }
  expected<std::unique_ptr<page_memory>> make(std::size_t bytes,
                                              std::size_t page_bytes) const override;

 private:
  make_queue queues_;
};

}  // namespace moetier::workers
