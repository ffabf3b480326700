#pragma once
// (interface) One device's memory, and one queue of work that it does in order. The engine's queue
// computes, the loader's fills pages; they know nothing of each other. Nothing here shows CUDA, so
// that whoever drives a queue is tested on any machine.
//
// Errors: what the device refuses before it serves is a typed error. After that the first failure
// is told to the sink that the device was opened with, once; the queue is lost then, and every
// further call of it says so at once. Nothing is retried.
//
// Thread: one at a time; the queue's owner.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "kernels/backend.hpp"
#include "kernels/cuda/launch.hpp"
#include "schemas/base/error.hpp"

namespace moetier::workers {

using device_bytes = std::unique_ptr<std::byte, void (*)(std::byte*)>;

enum class queue_status : std::uint8_t { ok = 0, lost = 1 };

// What makes two pieces of work the same: the same launches with the same arguments.
struct work_key {
  std::uint32_t rows_cap = 0;
  std::uint32_t k_in = 0;
  std::uint32_t slots = 0;
  std::uint32_t rows_per_slot = 0;
  kernels::return_mode mode = kernels::return_mode::partial;

  bool operator==(const work_key&) const = default;
};

struct row_copy {
  std::byte* to = nullptr;
  std::size_t to_pitch_bytes = 0;
  const std::byte* from = nullptr;
  std::size_t from_pitch_bytes = 0;
  std::size_t row_bytes = 0;
  std::uint32_t rows = 0;
};

// Enqueues launches on a stream, without waiting.
using stream_work = std::function<kernels::cuda::launch_status(void* stream)>;

class device_queue {
 public:
  virtual ~device_queue() = default;

  // Device memory, 256-byte aligned. reason::memory_insufficient, device_lost.
  virtual expected<device_bytes> allocate(std::size_t bytes) = 0;
  // Host memory that copies read and write while the host goes on; 64-byte aligned.
  virtual expected<device_bytes> allocate_pinned(std::size_t bytes) = 0;

  virtual queue_status copy_in(std::byte* device, const std::byte* pinned,
                               std::size_t bytes) noexcept = 0;
  virtual queue_status copy_out(std::byte* pinned, const std::byte* device,
                                std::size_t bytes) noexcept = 0;
  // Whether copies go to and from this memory as they do with pinned one: it is registered, or the
  // device's own.
  virtual bool reaches(std::span<const std::byte> memory) noexcept = 0;
  // Rows that lie apart on both sides. Requires: both sides are reached.
  virtual queue_status copy_rows(const row_copy& rows) noexcept = 0;
  virtual queue_status run(const stream_work& work) noexcept = 0;
  // As run(); work of a key that was seen before may be replayed from what was recorded then.
  // Requires: equal keys mean equal work.
  virtual queue_status run_again(const work_key& key, const stream_work& work) noexcept = 0;
  // Waits until everything is done; spins a little, then sleeps.
  virtual queue_status wait() noexcept = 0;

  // Marks are numbered from 1; done(m): everything enqueued before mark() gave m is done. At most
  // four are looked at: the newest ones.
  virtual std::uint64_t mark() noexcept = 0;
  virtual bool done(std::uint64_t mark) noexcept = 0;
  virtual queue_status wait_for(std::uint64_t mark) noexcept = 0;

  // The owner has seen a failure that the queue cannot see: as if it had been its own.
  virtual void give_up(const std::string& why) noexcept = 0;
  // Why the queue is lost; reason::device_lost. Requires: it is.
  virtual error why_lost() const = 0;
};

inline constexpr std::uint64_t k_marks_kept = 4;

}  // namespace moetier::workers
