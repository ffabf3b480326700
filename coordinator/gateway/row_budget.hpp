#pragma once
// The bytes of thin calls that the gateway holds at once, over all of its sessions. A call takes
// its share before it waits and gives it back when it has ended, however it ended. Thread: any.

#include <atomic>
#include <cstdint>
#include <utility>

#include "schemas/base/error.hpp"

namespace moetier::coordinator {

class row_budget final {
 public:
  class share final {
   public:
    share() = default;
    share(share&& other) noexcept { swap(other); }
    share& operator=(share&& other) noexcept {
      share(std::move(other)).swap(*this);
      return *this;
    }
    ~share() {
      if (of_ != nullptr) of_->held_.fetch_sub(bytes_, std::memory_order_relaxed);
    }

   private:
    friend class row_budget;
    share(row_budget& of, std::uint64_t bytes) : of_(&of), bytes_(bytes) {}
    void swap(share& other) noexcept {
      std::swap(of_, other.of_);
      std::swap(bytes_, other.bytes_);
    }

    row_budget* of_ = nullptr;
    std::uint64_t bytes_ = 0;
  };

  explicit row_budget(std::uint64_t most) : most_(most) {}
  row_budget(const row_budget&) = delete;  // shares point to it
  row_budget& operator=(const row_budget&) = delete;

  // reason::no_credit with retry_after when they do not fit beside what is held.
  expected<share> take(std::uint64_t bytes);
  // Whether anything fits at all: asked before a call's rows are copied out of their message.
  expected<void> room() const;
  std::uint64_t held() const noexcept { return held_.load(std::memory_order_relaxed); }

 private:
  unexpected_error full(std::uint64_t held, std::uint64_t more) const;

  const std::uint64_t most_;
  std::atomic<std::uint64_t> held_{0};
};

}  // namespace moetier::coordinator
