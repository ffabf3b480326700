#include "workers/store/page_memory.hpp"

#include <cstdint>

#include <sys/mman.h>

#include "schemas/base/assert.hpp"

namespace moetier::workers {
namespace {

constexpr std::size_t k_huge_bytes = std::size_t{2} << 20;

}  // namespace

std::unique_ptr<host_page_memory> host_page_memory::map(std::size_t bytes) {
  MOETIER_ASSERT(bytes > 0 && bytes % k_huge_bytes == 0);
  void* const raw = ::mmap(nullptr, bytes + k_huge_bytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (raw == MAP_FAILED) return nullptr;
  auto* const start = static_cast<std::byte*>(raw);
  const std::size_t head =
      (k_huge_bytes - reinterpret_cast<std::uintptr_t>(raw) % k_huge_bytes) % k_huge_bytes;
  const std::size_t tail = k_huge_bytes - head;
  if (head > 0) ::munmap(start, head);
  if (tail > 0) ::munmap(start + head + bytes, tail);
  // Advice only: without huge pages the pool works, some percent slower.
  ::madvise(start + head, bytes, MADV_HUGEPAGE);
  return std::unique_ptr<host_page_memory>(new host_page_memory(start + head, bytes));
}

host_page_memory::~host_page_memory() { ::munmap(base_, bytes_); }

expected<std::span<std::byte>> host_page_memory::stage(std::size_t offset, std::size_t bytes) {
  MOETIER_ASSERT(offset <= bytes_ && bytes <= bytes_ - offset);
  return std::span(base_ + offset, bytes);
}

expected<std::unique_ptr<page_memory>> host_page_memory_maker::make(std::size_t bytes,
                                                                    std::size_t) const {
  std::unique_ptr<page_memory> made = host_page_memory::map(bytes);
  if (made == nullptr) return fail(reason::memory_insufficient, "the page pool", bytes, "fewer");
  return made;
}

}  // namespace moetier::workers
