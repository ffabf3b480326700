#include "transport/exchange/bank_memory.hpp"

#include <sys/mman.h>

#include "schemas/base/assert.hpp"

namespace moetier::transport {
namespace {

constexpr std::size_t k_line_bytes = 128;  // regions share no cache line, nor a prefetched pair

constexpr std::size_t whole_lines(std::size_t bytes) noexcept {
  return (bytes + k_line_bytes - 1) / k_line_bytes * k_line_bytes;
}

std::size_t bank_bytes(const bank_memory::sizes& s) noexcept {
  return whole_lines(s.out_bytes) + whole_lines(s.in_bytes);
}

}  // namespace

// Headers first, then the banks: out, in, out, in, ...
expected<std::shared_ptr<bank_memory>> bank_memory::make(const sizes& wanted,
                                                         std::shared_ptr<RowMemoryWatch> watch) {
  const std::size_t bytes =
      k_wire_header_bytes * (wanted.banks + 1) + bank_bytes(wanted) * wanted.banks;
  // Pages of the kernel: zero, and real only once they are touched, so a large limit costs nothing
  // until large calls come.
  void* base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED) return fail(reason::memory_insufficient, "a pair's banks", bytes, 0);
  if (watch) watch->made({static_cast<std::byte*>(base), bytes});
  return std::shared_ptr<bank_memory>(std::unique_ptr<bank_memory>(
      new bank_memory(wanted, static_cast<std::byte*>(base), bytes, std::move(watch))));
}

bank_memory::~bank_memory() {
  if (leaked_) return;
  if (watch_) watch_->going({base_, bytes_});
  munmap(base_, bytes_);
}

std::span<std::byte, k_wire_header_bytes> bank_memory::head(std::uint32_t bank) noexcept {
  MOETIER_DEBUG_ASSERT(bank <= sizes_.banks);
  return std::span<std::byte, k_wire_header_bytes>(base_ + bank * k_wire_header_bytes,
                                                   k_wire_header_bytes);
}

std::byte* bank_memory::region(std::uint32_t bank) noexcept {
  return base_ + k_wire_header_bytes * (sizes_.banks + 1) + bank * bank_bytes(sizes_);
}

std::span<std::byte> bank_memory::out(std::uint32_t bank) noexcept {
  if (bank >= sizes_.banks) return {};
  return {region(bank), sizes_.out_bytes};
}

std::span<std::byte> bank_memory::in(std::uint32_t bank) noexcept {
  if (bank >= sizes_.banks) return {};
  return {region(bank) + whole_lines(sizes_.out_bytes), sizes_.in_bytes};
}

}  // namespace moetier::transport
