#pragma once
// A bare active-message echo over UCX, for measuring: what the library alone costs for messages of
// given sizes, on the lanes and with the settings of the carrier. Two threads, two workers, both
// polling; nothing of moetier's protocol. The module exports it beside the carrier; benches load it
// by its symbol. Thread: any; it takes the caller's thread until all calls are done.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "transport/communication.hpp"

namespace moetier::transport {

struct echo_wish {
  carrier_options options{};
  std::string transports{};      // of UCX, as "tcp"; empty = the carrier's
  std::size_t header_bytes = 0;  // of each message, both ways
  std::size_t out_bytes = 0;     // payload to the echo
  std::size_t back_bytes = 0;    // payload back
  std::uint32_t warmup = 0;
  std::uint32_t calls = 0;
};

inline constexpr const char* k_ucx_echo_symbol = "moetier_ucx_echo";

// True and the time of each measured round trip; or false and the reason in `why`.
using ucx_echo = bool(const echo_wish& wish, std::vector<std::uint64_t>& round_trips_ns,
                      std::string& why);

}  // namespace moetier::transport
