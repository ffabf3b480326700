#pragma once
// A worker for tests of the gateway: one thread around a worker half, experts by formula. It can be
// frozen (it stops looking at its half) and thawed. Thread: any; the half is its own thread's.

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "tests/transport/client/toy_experts.hpp"
#include "transport/communication.hpp"

namespace moetier::coordinator {

class toy_worker final {
 public:
  toy_worker(transport::Communication& carrier, transport::worker_identity identity,
             kernels::return_mode mode)
      : identity_(identity), mode_(mode) {
    auto made = carrier.make_worker({.identity = identity});
    if (!made) std::abort();
    half_ = std::move(*made);
    thread_ = std::thread([this] { run(); });
  }
  ~toy_worker() {
    stop_ = true;
    half_->wake();
    thread_.join();
  }

  const transport::member_address& address() const { return half_->address(); }
  transport::worker_identity identity() const { return identity_; }
  void place(transport::snapshot_ptr snapshot) {
    const std::lock_guard lock(mutex_);
    snapshot_ = std::move(snapshot);
  }
  void freeze(bool on) { frozen_ = on; }
  std::uint64_t exchanges() const { return exchanges_; }

  expected<void> attach(const transport::source_identity& source,
                        const transport::source_shape& shape,
                        const transport::member_address& address) {
    std::unique_lock lock(mutex_);
    wish_ = attach_wish{source, shape, address, std::nullopt};
    half_->wake();
    attached_.wait(lock, [this] { return wish_->result.has_value(); });
    auto result = *wish_->result;
    wish_.reset();
    return result;
  }

 private:
  struct attach_wish {
    transport::source_identity source;
    transport::source_shape shape;
    transport::member_address address;
    std::optional<expected<void>> result;
  };

  void run() {
    std::array<transport::arrival, 8> arrivals;
    while (!stop_) {
      half_->wait(std::chrono::nanoseconds(0), std::chrono::milliseconds(2));
      transport::snapshot_ptr snapshot;
      {
        const std::lock_guard lock(mutex_);
        snapshot = snapshot_;
        if (wish_ && !wish_->result) {
          wish_->result = half_->attach_source(wish_->source, wish_->shape, wish_->address);
          attached_.notify_all();
        }
      }
      if (frozen_) continue;
      const std::size_t count = half_->poll(arrivals);
      for (std::size_t i = 0; i < count; ++i) serve(arrivals[i], *snapshot);
    }
  }

  void serve(const transport::arrival& a, const transport::routing_snapshot& snapshot) {
    ++exchanges_;
    const auto region = half_->return_region(a.ticket);
    if (region.empty()) return;
    const auto rows = client::toy::answer(
        *a.shape, mode_, snapshot.model.hidden_size, a.rows, a.hidden.data(), a.records.data(),
        region.data(), [&](std::int32_t slot) {
          return client::toy::expert_in_slot(snapshot.placement, a.key.layer, slot);
        });
    half_->give_back(a.ticket, rows, status::ok, 0);
  }

  const transport::worker_identity identity_;
  const kernels::return_mode mode_;
  std::unique_ptr<transport::WorkerHalf> half_;
  std::mutex mutex_;
  std::condition_variable attached_;
  transport::snapshot_ptr snapshot_;
  std::optional<attach_wish> wish_;
  std::atomic<bool> frozen_{false};
  std::atomic<bool> stop_{false};
  std::atomic<std::uint64_t> exchanges_{0};
  std::thread thread_;
};

}  // namespace moetier::coordinator
