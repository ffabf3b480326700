#include "workers/device/staged_pages.hpp"

#include <utility>

#include "schemas/base/assert.hpp"

namespace moetier::workers {

expected<std::unique_ptr<staged_pages>> staged_pages::create(std::unique_ptr<device_queue> queue,
                                                             std::size_t bytes,
                                                             std::size_t page_bytes) {
  MOETIER_ASSERT(page_bytes > 0 && page_bytes <= bytes);
  auto block = queue->allocate(bytes);
  if (!block) return unexpected_error(std::move(block.error()));
  auto first = queue->allocate_pinned(page_bytes);
  if (!first) return unexpected_error(std::move(first.error()));
  auto second = queue->allocate_pinned(page_bytes);
  if (!second) return unexpected_error(std::move(second.error()));
  return std::unique_ptr<staged_pages>(
      new staged_pages(std::move(queue), std::move(*block),
                       {place{std::move(*first)}, place{std::move(*second)}}, bytes, page_bytes));
}

staged_pages::staged_pages(std::unique_ptr<device_queue> queue, device_bytes block,
                           std::array<place, k_places> places, std::size_t bytes,
                           std::size_t page_bytes)
    : queue_(std::move(queue)),
      block_(std::move(block)),
      places_(std::move(places)),
      bytes_(bytes),
      page_bytes_(page_bytes) {}

// A copy that is under way reads and writes what is freed next.
staged_pages::~staged_pages() { (void)queue_->wait(); }

expected<void> staged_pages::land(place& p) {
  if (p.mark == 0) return {};
  const queue_status waited = queue_->wait_for(std::exchange(p.mark, 0));
  if (waited == queue_status::ok) return {};
  for (place& other : places_) other.mark = 0;
  return unexpected_error(queue_->why_lost());
}

expected<std::span<std::byte>> staged_pages::stage(std::size_t offset, std::size_t bytes) {
  MOETIER_ASSERT(staged_ == 0);
  MOETIER_ASSERT(bytes > 0 && bytes <= page_bytes_ && offset <= bytes_ && bytes <= bytes_ - offset);
  place& p = places_[next_];
  if (auto landed = land(p); !landed) return unexpected_error(std::move(landed.error()));
  offset_ = offset;
  staged_ = bytes;
  return std::span(p.bytes.get(), bytes);
}

expected<void> staged_pages::send() {
  MOETIER_ASSERT(staged_ > 0);
  place& p = places_[next_];
  if (queue_->copy_in(block_.get() + offset_, p.bytes.get(), std::exchange(staged_, 0)) !=
      queue_status::ok)
    return unexpected_error(queue_->why_lost());
  p.mark = queue_->mark();
  next_ = (next_ + 1) % k_places;
  return {};
}

std::size_t staged_pages::under_way() const noexcept {
  // Copies are done in order: the first that is not done and all behind it are under way.
  std::size_t count = 0;
  for (const place& p : places_) count += p.mark != 0 && !queue_->done(p.mark) ? 1 : 0;
  return count;
}

expected<void> staged_pages::settle() {
  for (std::size_t i = 0; i < k_places; ++i) {
    if (auto landed = land(places_[(next_ + i) % k_places]); !landed) return landed;
  }
  return {};
}

expected<std::unique_ptr<page_memory>> staged_pages_maker::make(std::size_t bytes,
                                                                std::size_t page_bytes) const {
  auto queue = queues_();
  if (!queue) return unexpected_error(std::move(queue.error()));
  return staged_pages::create(std::move(*queue), bytes, page_bytes);
}

}  // namespace moetier::workers
