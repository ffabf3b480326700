#pragma once
// Round trips of moetier's own exchange protocol over one of its carriers: a source half here, a
// worker half on a thread that gives every row back at once and computes nothing. Set beside a bare
// echo it shows what the protocol costs. Thread: owner; it takes the caller's thread until all
// calls are done.

#include <cstdint>
#include <string>
#include <vector>

#include "schemas/base/error.hpp"
#include "schemas/base/time.hpp"
#include "transport/communication.hpp"

namespace moetier::cli {

struct exchange_wish {
  std::string carrier;  // "ucx", "in_process"
  transport::carrier_options options{};
  std::uint32_t rows = 1;
  std::uint32_t row_bytes = 0;  // there and back; a multiple of 16. A record of 16 bytes goes along
  duration_ns spin = 50 * k_microsecond;
  std::uint32_t warmup = 0;
  std::uint32_t calls = 0;
};

// Each measured round trip in nanoseconds.
expected<std::vector<std::uint64_t>> exchange_times(const exchange_wish& wish);

}  // namespace moetier::cli
