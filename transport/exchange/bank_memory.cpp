#include "transport/exchange/bank_memory.hpp"

#include <sys/mman.h>

#include "schemas/base/assert.hpp"

namespace moetier::transport {

expected<std::shared_ptr<bank_memory>> bank_memory::make(const bank_layout& wanted,
                                                         std::shared_ptr<RowMemoryWatch> watch) {
  std::unique_ptr<shared_block> block;
  std::span<std::byte> bytes;
  if (wanted.carrier_bytes > 0) {
    auto made = shared_block::make(wanted.bytes());
    if (!made) return unexpected_error(made.error());
    block = std::move(*made);
    bytes = block->bytes();
  } else {
    // Pages of the kernel: zero, and real only once they are touched, so a large limit costs
    // nothing until large calls come.
    void* base =
        mmap(nullptr, wanted.bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED)
      return fail(reason::memory_insufficient, "a pair's banks", wanted.bytes(), 0);
    bytes = {static_cast<std::byte*>(base), wanted.bytes()};
  }
  if (watch) watch->made(bytes);
  return std::shared_ptr<bank_memory>(std::unique_ptr<bank_memory>(
      new bank_memory(wanted, bytes, std::move(block), std::move(watch))));
}

bank_memory::~bank_memory() {
  if (leaked_) {
    if (block_) block_->leak();
    return;
  }
  if (watch_) watch_->going(bytes_);
  if (!block_) munmap(bytes_.data(), bytes_.size());
}

std::span<std::byte, k_wire_header_bytes> bank_memory::head(std::uint32_t head) noexcept {
  MOETIER_DEBUG_ASSERT(head < layout_.heads());
  return std::span<std::byte, k_wire_header_bytes>(bytes_.data() + layout_.head_at(head),
                                                   k_wire_header_bytes);
}

std::span<std::byte> bank_memory::out(std::uint32_t bank) noexcept {
  if (bank >= layout_.banks) return {};
  return bytes_.subspan(layout_.out_at(bank), layout_.out_bytes);
}

std::span<std::byte> bank_memory::in(std::uint32_t bank) noexcept {
  if (bank >= layout_.banks) return {};
  return bytes_.subspan(layout_.in_at(bank), layout_.in_bytes);
}

}  // namespace moetier::transport
