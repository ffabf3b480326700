#pragma once
// A worker's pages of one weight shape, for all layers: one block of anonymous memory, 2 MiB
// aligned and advised to huge pages, divided into equal pages whose addresses hold for the pool's
// life. Its size is billed and refused before anything is allocated. The pool knows the state of
// each page, not what lies in it; the expert store owns it and decides.
//
//   empty -> filling -> verified -> serving -> retiring -> empty
//   filling, verified -> empty when a plan is aborted
//
// Thread: owner of the store; bytes of serving and retiring pages: any reader.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "schemas/base/error.hpp"

namespace moetier::workers {

enum class page_state : std::uint8_t { empty, filling, verified, serving, retiring };
inline constexpr std::size_t k_page_states = 5;

struct page_index {
  std::uint32_t value = 0;
  auto operator<=>(const page_index&) const = default;
};

class page_pool final {
 public:
  // What `pages` pages cost, rounded up to what the system hands out. reason::limit_exceeded when
  // that is no size that memory could have.
  static expected<std::size_t> bill(std::size_t page_bytes, std::uint64_t pages);

  // Requires: page_bytes is a multiple of 64, pages > 0. reason::memory_insufficient with both
  // numbers when the bill is above `bytes_max`, or when the system refuses.
  static expected<std::unique_ptr<page_pool>> create(std::size_t page_bytes, std::uint64_t pages,
                                                     std::size_t bytes_max);

  ~page_pool();
  page_pool(const page_pool&) = delete;
  page_pool& operator=(const page_pool&) = delete;

  std::uint32_t pages() const noexcept { return static_cast<std::uint32_t>(states_.size()); }
  std::uint32_t count(page_state state) const noexcept {
    return counts_[static_cast<std::size_t>(state)];
  }
  page_state state(page_index page) const noexcept { return states_[page.value]; }

  // The lowest empty page, now filling. Requires: count(empty) > 0.
  page_index begin_fill() noexcept;
  // Requires: the step is an arrow of the diagram above.
  void move(page_index page, page_state to) noexcept;

  // Requires: the page is filling.
  std::span<std::byte> writable(page_index page) noexcept;
  const std::byte* address(page_index page) const noexcept;

 private:
  page_pool(std::byte* base, std::size_t bytes, std::size_t page_bytes, std::uint32_t pages);

  std::byte* base_;
  std::size_t bytes_;  // of the mapping
  std::size_t page_bytes_;
  std::vector<page_state> states_;
  std::uint32_t counts_[k_page_states]{};
};

}  // namespace moetier::workers
