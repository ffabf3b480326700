#pragma once
// Page memory with one staging place, whose bytes land no earlier than they must: when it is needed
// again, or in settle(). Breaks on demand. Thread: owner.

#include <algorithm>
#include <utility>
#include <vector>

#include "workers/store/page_memory.hpp"

namespace moetier::workers {

class late_memory final : public page_memory {
 public:
  late_memory(std::size_t bytes, std::size_t page_bytes) : block_(bytes), staging_(page_bytes) {}

  const std::byte* base() const noexcept override { return block_.data(); }
  expected<std::span<std::byte>> stage(std::size_t offset, std::size_t bytes) override {
    if (auto landed = settle(); !landed) return unexpected_error(landed.error());
    offset_ = offset;
    return std::span(staging_).first(bytes);
  }
  expected<void> send() override {
    under_way_ = 1;
    ++sends;
    return {};
  }
  std::size_t under_way() const noexcept override { return under_way_; }
  expected<void> settle() override {
    if (std::exchange(under_way_, 0) == 0) return {};
    if (broken) return fail(reason::internal_error, "the copy broke");
    std::copy(staging_.begin(), staging_.end(),
              block_.begin() + static_cast<std::ptrdiff_t>(offset_));
    return {};
  }

  bool broken = false;
  int sends = 0;

 private:
  std::vector<std::byte> block_;
  std::vector<std::byte> staging_;
  std::size_t offset_ = 0;
  std::size_t under_way_ = 0;
};

class late_memory_maker final : public page_memory_maker {
 public:
  bool on_host() const noexcept override { return false; }
  expected<std::unique_ptr<page_memory>> make(std::size_t bytes,
                                              std::size_t page_bytes) const override {
    auto memory = std::make_unique<late_memory>(bytes, page_bytes);
    made = memory.get();
    return memory;
  }

  mutable late_memory* made = nullptr;  // the newest
};

}  // namespace moetier::workers
