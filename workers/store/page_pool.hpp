#pragma once
// A worker's pages of one weight shape, for all layers: one block of memory (workers/store/
// page_memory.hpp), divided into equal pages whose addresses hold for the pool's life. Its size is
// billed and refused before anything is allocated. The pool knows the state of each page, not what
// lies in it; the expert store owns it and decides.
//
//   empty -> filling -> verified -> serving -> retiring -> empty
//   filling, verified -> empty when a plan is aborted
//
// A page that was sent is filling until its bytes have landed, then verified.
//
// Thread: owner of the store; bytes of serving and retiring pages: any reader.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "schemas/base/error.hpp"
#include "workers/store/page_memory.hpp"

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
  static expected<std::unique_ptr<page_pool>> create(
      std::size_t page_bytes, std::uint64_t pages, std::size_t bytes_max,
      const page_memory_maker& memory = host_page_memory_maker());

  page_pool(const page_pool&) = delete;
  page_pool& operator=(const page_pool&) = delete;

  std::uint32_t pages() const noexcept { return static_cast<std::uint32_t>(states_.size()); }
  std::size_t page_bytes() const noexcept { return page_bytes_; }
  std::uint32_t count(page_state state) const noexcept {
    return counts_[static_cast<std::size_t>(state)];
  }
  page_state state(page_index page) const noexcept { return states_[page.value]; }

  // The lowest empty page, now filling. Requires: count(empty) > 0.
  page_index begin_fill() noexcept;
  // Requires: the step is an arrow of the diagram above.
  void move(page_index page, page_state to) noexcept;

  // Where the page's bytes are written. Requires: the page is filling; the one staged before was
  // sent.
  expected<std::span<std::byte>> stage(page_index page);
  // The page that was staged last is whole; it becomes verified when its bytes have landed, at the
  // latest in settle(), and so may earlier ones now.
  expected<void> send(page_index page);
  // Waits until all that was sent has landed. After an error what had not stays filling.
  expected<void> settle();
  const std::byte* address(page_index page) const noexcept;

 private:
  page_pool(std::unique_ptr<page_memory> memory, std::size_t page_bytes, std::uint32_t pages);
  void verify_landed();

  std::unique_ptr<page_memory> memory_;
  std::size_t page_bytes_;
  std::deque<page_index> sent_;  // not known to have landed, oldest first
  std::vector<page_state> states_;
  std::uint32_t counts_[k_page_states]{};
};

}  // namespace moetier::workers
