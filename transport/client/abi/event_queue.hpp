#pragma once
// A session's events: a bounded queue that the link's thread fills and the caller empties, with a
// descriptor that is readable while events wait. A full queue drops the newest; an overflow event
// then stands where they would. Its end wakes who waits and waits until they are gone.
// Thread: any.

#include <array>
#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "schemas/base/error.hpp"
#include "schemas/base/time.hpp"
#include "transport/client/abi/moetier.h"

namespace moetier::abi {

enum class event_wait : std::uint8_t { came, none, closed };

class event_queue final {
 public:
  static constexpr std::size_t k_events_max = 1024;

  event_queue();
  ~event_queue();
  event_queue(const event_queue&) = delete;
  event_queue& operator=(const event_queue&) = delete;

  void push(const moetier_event& event) noexcept;
  // Blocks until an event came, the limit is over (none) or close().
  event_wait pop(moetier_event& event, duration_ns limit);
  // Ends every pop(), now and later; when it returns no thread is inside one any more.
  void close() noexcept;
  int descriptor() const noexcept { return descriptor_; }  // -1: the system gave none

 private:
  std::mutex mutex_;
  std::condition_variable came_;  // an event, or the end
  std::condition_variable left_;  // the last waiting thread, after the end
  std::array<moetier_event, k_events_max> ring_;
  std::size_t first_ = 0;
  std::size_t count_ = 0;
  std::size_t waiting_ = 0;  // threads inside pop()
  bool overflowed_ = false;
  bool closed_ = false;
  int descriptor_ = -1;
};

}  // namespace moetier::abi
