#pragma once
// Whether another process of this host still runs. Nothing is asked of it, so a frozen one lives.
// The descriptor stands for the process that had the number when it was made: whoever takes the
// number over later is not taken for it. Owned by who watches. Thread: owner.

#include <cstdint>
#include <memory>

#include "schemas/base/error.hpp"
#include "schemas/file/descriptor.hpp"

namespace moetier::transport {

class peer_process final {
 public:
  // One's own, or another; one that has ended already is watched as well.
  static expected<std::unique_ptr<peer_process>> watch(std::uint32_t process);

  bool has_ended() const noexcept;

  static bool kernel_can_watch() noexcept;

 private:
  enum class kind : std::uint8_t { self, other, absent };
  peer_process(kind which, int fd) noexcept : which_(which), fd_(fd) {}

  kind which_;
  descriptor fd_;
};

}  // namespace moetier::transport
