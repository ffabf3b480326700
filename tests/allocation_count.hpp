#pragma once
// Counts what a program takes from the heap: including this replaces operator new and delete for
// the whole program, so it belongs into one source of a test that is a program of its own. Thread:
// any.

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace {
std::atomic<std::size_t> allocations{0};
}  // namespace

// None is inlined: the compiler would see one half of a pair only, and warn of it.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* const at = std::malloc(bytes == 0 ? 1 : bytes)) return at;
  throw std::bad_alloc();
}
// Sanitizers bring one of their own, which would not count and not go with the deletes here.
[[gnu::noinline]] void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return std::malloc(bytes == 0 ? 1 : bytes);
}
[[gnu::noinline]] void operator delete(void* at) noexcept { std::free(at); }
[[gnu::noinline]] void operator delete(void* at, std::size_t) noexcept { std::free(at); }
