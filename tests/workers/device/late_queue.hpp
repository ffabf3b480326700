#pragma once
// A device_queue on host memory that does nothing before it is waited for, as a device may, and
// that replays work of a known key exactly as it was recorded. Fails on demand. Thread: owner.

#include <algorithm>
#include <cstring>
#include <deque>
#include <functional>
#include <optional>
#include <vector>

#include "workers/device/device_queue.hpp"

namespace moetier::workers {

class late_queue final : public device_queue {
 public:
  expected<device_bytes> allocate(std::size_t bytes) override {
    if (allocated + bytes > bytes_max)
      return fail(reason::memory_insufficient, "device memory", bytes, "fewer");
    allocated += bytes;
    return block(bytes);
  }
  expected<device_bytes> allocate_pinned(std::size_t bytes) override { return block(bytes); }

  queue_status copy_in(std::byte* device, const std::byte* pinned,
                       std::size_t bytes) noexcept override {
    bytes_in += bytes;
    return later([=] { std::memcpy(device, pinned, bytes); });
  }
  queue_status copy_out(std::byte* pinned, const std::byte* device,
                        std::size_t bytes) noexcept override {
    bytes_out += bytes;
    return later([=] { std::memcpy(pinned, device, bytes); });
  }
  bool reaches(std::span<const std::byte> memory) noexcept override {
    ++asked;
    return std::any_of(reached.begin(), reached.end(), [&](std::span<const std::byte> block) {
      return memory.data() >= block.data() &&
             memory.data() + memory.size() <= block.data() + block.size();
    });
  }
  queue_status copy_rows(const row_copy& r) noexcept override {
    bytes_straight += r.rows * r.row_bytes;
    return later([r] {
      for (std::uint32_t i = 0; i < r.rows; ++i)
        std::memcpy(r.to + i * r.to_pitch_bytes, r.from + i * r.from_pitch_bytes, r.row_bytes);
    });
  }
  // A launch takes its arguments when it is enqueued: so does the work, which hands over what is to
  // be done later through `stream`.
  queue_status run(const stream_work& work) noexcept override {
    ++enqueued;
    launches now;
    const auto done = work(&now);
    if (!done.ok()) return give_up("a launch failed"), queue_status::lost;
    return replay(now);
  }
  queue_status run_again(const work_key& key, const stream_work& work) noexcept override {
    keys.push_back(key);
    for (const auto& [known, made] : recorded_) {
      if (known == key) return replay(made);
    }
    ++enqueued;
    launches made;
    if (!work(&made).ok()) return give_up("a launch failed"), queue_status::lost;
    recorded_.emplace_back(key, made);
    return replay(made);
  }
  queue_status wait() noexcept override {
    if (breaks) give_up("it broke");
    if (lost_) return queue_status::lost;
    for (; !ops_.empty(); ops_.pop_front()) ops_.front()();
    return queue_status::ok;
  }

  std::uint64_t mark() noexcept override {
    ++marks_;
    (void)later([this, m = marks_] { reached_ = m; });
    return marks_;
  }
  bool done(std::uint64_t m) noexcept override { return reached_ >= m; }
  queue_status wait_for(std::uint64_t m) noexcept override {
    if (breaks) give_up("it broke");
    if (lost_) return queue_status::lost;
    for (; reached_ < m; ops_.pop_front()) ops_.front()();
    return queue_status::ok;
  }

  void give_up(const std::string& why) noexcept override {
    if (!lost_) lost_ = make_error(reason::device_lost, why);
    ++given_up;
  }
  error why_lost() const override { return *lost_; }

  // What a fake layer's launches are put into: the stream of this queue.
  using launches = std::vector<std::function<void()>>;

  std::size_t bytes_max = ~std::size_t{0};
  bool breaks = false;
  std::size_t allocated = 0;
  std::size_t bytes_in = 0;
  std::size_t bytes_out = 0;
  std::size_t bytes_straight = 0;
  int asked = 0;  // whether memory is reached
  std::vector<std::span<const std::byte>> reached;
  int enqueued = 0;  // work that was asked for its launches
  int given_up = 0;
  std::vector<work_key> keys;

 private:
  static device_bytes block(std::size_t bytes) {
    constexpr std::align_val_t k_alignment{256};
    auto* const p = static_cast<std::byte*>(::operator new[](bytes, k_alignment));
    std::memset(p, 0xA5, bytes);  // nobody may count on zeros
    return device_bytes(p,
                        [](std::byte* gone) { ::operator delete[](gone, std::align_val_t{256}); });
  }
  queue_status later(std::function<void()> op) {
    if (lost_) return queue_status::lost;
    ops_.push_back(std::move(op));
    return queue_status::ok;
  }
  queue_status replay(const launches& made) {
    for (const auto& launch : made) {
      if (later(launch) != queue_status::ok) return queue_status::lost;
    }
    return queue_status::ok;
  }

  std::deque<std::function<void()>> ops_;
  std::vector<std::pair<work_key, launches>> recorded_;
  std::uint64_t marks_ = 0;
  std::uint64_t reached_ = 0;
  std::optional<error> lost_;
};

}  // namespace moetier::workers
