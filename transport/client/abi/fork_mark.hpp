#pragma once
// Tells a forked child from the process that opened a handle: its threads and sockets are not
// there any more. The mark costs a load per call, no system call. Nothing is registered before the
// first handle is opened. Thread: any.

#include <cstdint>

#include "schemas/base/error.hpp"

namespace moetier::abi {

class fork_mark final {
 public:
  fork_mark();
  // reason::sequence in a child.
  expected<void> check() const;

 private:
  std::uint32_t generation_;
};

}  // namespace moetier::abi
