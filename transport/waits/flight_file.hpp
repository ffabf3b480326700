#pragma once
// Where the flight recorder goes when a call ends in TIMEOUT: one file, replaced each time, written
// at most once in a while so that a row of timeouts costs one. Thread: any.

#include <mutex>
#include <string>
#include <string_view>

#include "schemas/base/error.hpp"
#include "schemas/base/time.hpp"
#include "transport/waits/wait_ring.hpp"

namespace moetier::transport {

class flight_file final {
 public:
  static constexpr duration_ns k_write_every = 10 * k_second;

  explicit flight_file(std::string path) : path_(std::move(path)) {}

  // Whether it was written: false within k_write_every of the last time, while another thread
  // writes, or when the file cannot be written.
  bool write(const wait_ring& ring, std::string_view peers, time_ns now) noexcept;

 private:
  const std::string path_;
  std::mutex mutex_;
  time_ns written_at_ = 0;
  bool ever_ = false;
};

}  // namespace moetier::transport
