#pragma once
// Compute pool: the threads of one CPU backend, which owns it. for_each() hands out numbered items;
// the caller works too and returns when all are done. Items are claimed one by one, so an unequal
// machine stays busy; nobody waits for a thread that has not claimed anything. Whoever waits, for
// the last items or for the next ones, offers its core to others for some 50 us before it sleeps in
// the kernel. It allocates nothing after construction and runs one for_each() at a time. Thread:
// owner (for_each: one caller at a time).

#include <atomic>
#include <cstdint>
#include <thread>
#include <type_traits>
#include <vector>

namespace moetier::kernels {

class compute_pool final {
 public:
  // Starts threads - 1 threads. Requires: threads >= 1. May throw std::system_error.
  explicit compute_pool(unsigned threads);
  ~compute_pool();
  compute_pool(const compute_pool&) = delete;
  compute_pool& operator=(const compute_pool&) = delete;

  unsigned threads() const noexcept { return static_cast<unsigned>(sleepers_.size()) + 1; }

  // Calls body(item, lane) for every item below `items`; calls that run at once have different
  // lanes, lane < threads(). Requires: body does not throw and does not call for_each().
  template <class Body>
  void for_each(std::uint32_t items, Body&& body) noexcept {
    using body_type = std::remove_reference_t<Body>;
    run(items, const_cast<void*>(static_cast<const void*>(&body)),
        [](void* context, std::uint32_t item, unsigned lane) {
          (*static_cast<body_type*>(context))(item, lane);
        });
  }

 private:
  using item_fn = void (*)(void* context, std::uint32_t item, unsigned lane);

  void run(std::uint32_t items, void* context, item_fn call) noexcept;
  bool take_one(unsigned lane) noexcept;
  void sleeper_loop(unsigned lane) noexcept;
  void stop() noexcept;

  // The job's words are written before `open_` announces it and stay until all its items are done,
  // so whoever has claimed an item may read them.
  void* context_ = nullptr;
  item_fn call_ = nullptr;
  std::uint32_t items_ = 0;
  std::uint32_t job_ = 0;

  alignas(64) std::atomic<std::uint64_t> open_{0};  // job number << 32 | items not yet claimed
  alignas(64) std::atomic<std::uint32_t> done_{0};
  alignas(64) std::atomic<std::uint32_t> wake_{0};
  std::atomic<bool> stopping_{false};
  std::vector<std::thread> sleepers_;
};

}  // namespace moetier::kernels
