#pragma once
// A session's events: a bounded queue that the link's thread fills and the caller empties, with a
// descriptor that is readable while events wait. A full queue drops the newest; an overflow event
// then stands where they would. Thread: any.

#include <array>
#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "schemas/base/error.hpp"
#include "schemas/base/time.hpp"
#include "transport/client/abi/moetier.h"

namespace moetier::abi {

class event_queue final {
 public:
  static constexpr std::size_t k_events_max = 1024;

  event_queue();
  ~event_queue();
  event_queue(const event_queue&) = delete;
  event_queue& operator=(const event_queue&) = delete;

  void push(const moetier_event& event) noexcept;
  // False when none came within the limit.
  bool pop(moetier_event& event, duration_ns limit);
  int descriptor() const noexcept { return descriptor_; }  // -1: the system gave none

 private:
  std::mutex mutex_;
  std::condition_variable came_;
  std::array<moetier_event, k_events_max> ring_;
  std::size_t first_ = 0;
  std::size_t count_ = 0;
  bool overflowed_ = false;
  int descriptor_ = -1;
};

}  // namespace moetier::abi
