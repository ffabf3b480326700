#include "workers/store/page_pool.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "schemas/base/assert.hpp"

namespace moetier::workers {
namespace {

constexpr std::size_t k_huge_bytes = std::size_t{2} << 20;

constexpr bool is_step(page_state from, page_state to) {
  switch (from) {
    case page_state::empty: return to == page_state::filling;
    case page_state::filling: return to == page_state::verified || to == page_state::empty;
    case page_state::verified: return to == page_state::serving || to == page_state::empty;
    case page_state::serving: return to == page_state::retiring;
    case page_state::retiring: return to == page_state::empty;
  }
  return false;
}

}  // namespace

expected<std::size_t> page_pool::bill(std::size_t page_bytes, std::uint64_t pages) {
  std::size_t bytes = 0;
  if (pages > std::numeric_limits<std::uint32_t>::max() ||
      __builtin_mul_overflow(page_bytes, pages, &bytes) ||
      bytes > std::numeric_limits<std::size_t>::max() / 2)
    return fail(reason::limit_exceeded, "the number of pages", pages,
                std::min<std::size_t>(std::numeric_limits<std::uint32_t>::max(),
                                      std::numeric_limits<std::size_t>::max() / 2 / page_bytes));
  return (bytes + k_huge_bytes - 1) / k_huge_bytes * k_huge_bytes;
}

expected<std::unique_ptr<page_pool>> page_pool::create(std::size_t page_bytes, std::uint64_t pages,
                                                       std::size_t bytes_max,
                                                       const page_memory_maker& memory) {
  MOETIER_ASSERT(page_bytes > 0 && page_bytes % 64 == 0);
  MOETIER_ASSERT(pages > 0);
  const auto bytes = bill(page_bytes, pages);
  if (!bytes) return unexpected_error(bytes.error());
  if (*bytes > bytes_max)
    return fail(reason::memory_insufficient, "the page pool", *bytes, bytes_max);
  auto made = memory.make(*bytes, page_bytes);
  if (!made) return unexpected_error(std::move(made.error()));
  return std::unique_ptr<page_pool>(
      new page_pool(std::move(*made), page_bytes, static_cast<std::uint32_t>(pages)));
}

page_pool::page_pool(std::unique_ptr<page_memory> memory, std::size_t page_bytes,
                     std::uint32_t pages)
    : memory_(std::move(memory)), page_bytes_(page_bytes), states_(pages, page_state::empty) {
  counts_[static_cast<std::size_t>(page_state::empty)] = pages;
}

page_index page_pool::begin_fill() noexcept {
  // A linear search: once per expert loaded, and loading one costs thousands of times more.
  const auto at = std::find(states_.begin(), states_.end(), page_state::empty);
  MOETIER_ASSERT(at != states_.end());
  const page_index page{static_cast<std::uint32_t>(at - states_.begin())};
  move(page, page_state::filling);
  return page;
}

void page_pool::move(page_index page, page_state to) noexcept {
  MOETIER_ASSERT(page.value < states_.size());
  page_state& state = states_[page.value];
  MOETIER_ASSERT(is_step(state, to));
  --counts_[static_cast<std::size_t>(state)];
  ++counts_[static_cast<std::size_t>(to)];
  state = to;
}

expected<std::span<std::byte>> page_pool::stage(page_index page) {
  MOETIER_ASSERT(state(page) == page_state::filling);
  return memory_->stage(page.value * page_bytes_, page_bytes_);
}

expected<void> page_pool::send(page_index page) {
  MOETIER_ASSERT(state(page) == page_state::filling);
  if (auto sent = memory_->send(); !sent) return sent;
  sent_.push_back(page);
  verify_landed();
  return {};
}

expected<void> page_pool::settle() {
  if (auto settled = memory_->settle(); !settled) {
    sent_.clear();
    return settled;
  }
  verify_landed();
  MOETIER_ASSERT(sent_.empty());
  return {};
}

void page_pool::verify_landed() {
  while (sent_.size() > memory_->under_way()) {
    move(sent_.front(), page_state::verified);
    sent_.pop_front();
  }
}

const std::byte* page_pool::address(page_index page) const noexcept {
  MOETIER_ASSERT(page.value < states_.size());
  return memory_->base() + page.value * page_bytes_;
}

}  // namespace moetier::workers
