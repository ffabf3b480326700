#pragma once
// The memory of one (source, worker) pair at one end: for each bank a header, a region that goes
// out and a region that comes in, and headers for words beside the rows. It is made when the pair
// is attached and handed to the carrier, which keeps it for as long as a request of the library may
// still touch it; so the pair can be detached at any moment. Where the carrier keeps a part of it
// for itself it is a block that peers can map. Regions are zero at first: no padding byte ever
// shows what the process held before. Thread: owner; the regions' bytes belong to whom the
// exchange's state names.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "schemas/base/error.hpp"
#include "schemas/wire/wire_header.hpp"
#include "transport/communication.hpp"
#include "transport/exchange/bank_layout.hpp"
#include "transport/exchange/shared_block.hpp"

namespace moetier::transport {

class bank_memory final {
 public:
  // `watch` (optional) is told of the whole block.
  static expected<std::shared_ptr<bank_memory>> make(const bank_layout& wanted,
                                                     std::shared_ptr<RowMemoryWatch> watch = {});
  ~bank_memory();
  bank_memory(const bank_memory&) = delete;
  bank_memory& operator=(const bank_memory&) = delete;

  const bank_layout& layout() const noexcept { return layout_; }
  // Requires: head < layout().heads(). A bank that is none has empty regions.
  std::span<std::byte, k_wire_header_bytes> head(std::uint32_t head) noexcept;
  std::span<std::byte> out(std::uint32_t bank) noexcept;
  std::span<std::byte> in(std::uint32_t bank) noexcept;

  // Where peers can map it, or null.
  shared_block* block() noexcept { return block_.get(); }

  // Never unmap: a peer that lives may still store here.
  void leak() noexcept { leaked_ = true; }

 private:
  bank_memory(const bank_layout& layout, std::span<std::byte> bytes,
              std::unique_ptr<shared_block> block, std::shared_ptr<RowMemoryWatch> watch) noexcept
      : layout_(layout), bytes_(bytes), block_(std::move(block)), watch_(std::move(watch)) {}

  bank_layout layout_;
  std::span<std::byte> bytes_;
  std::unique_ptr<shared_block> block_;
  std::shared_ptr<RowMemoryWatch> watch_;
  bool leaked_ = false;
};

}  // namespace moetier::transport
