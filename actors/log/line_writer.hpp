#pragma once
// Writes whole lines to a descriptor from a thread of its own, so that a reader who stops reading
// (a paused pager, a collector that hangs) holds up nobody who logs. While lines go out a writer
// waits for its own, as if it wrote itself; once they stand still it waits no more, lines queue up
// to a bound, and what comes then is dropped and counted. Thread: any.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "schemas/base/time.hpp"

namespace moetier {

class line_writer final {
 public:
  static constexpr std::size_t k_bytes_max = std::size_t{256} * 1024;
  static constexpr duration_ns k_patience = 100 * k_millisecond;

  explicit line_writer(int descriptor);  // not owned
  ~line_writer();                        // gives what is queued k_patience since the last progress
  line_writer(const line_writer&) = delete;
  line_writer& operator=(const line_writer&) = delete;

  void write(std::string line);  // with its end
  // Lines that found no room, or that the descriptor did not take.
  std::uint64_t dropped() const noexcept;

 private:
  struct state;
  std::shared_ptr<state> state_;  // the thread's too: it may outlive this
};

}  // namespace moetier
