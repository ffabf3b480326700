#pragma once
// What the RPC server bounds beside the protocol's own limits. Thread: any.

#include <cstddef>

#include "schemas/base/limits.hpp"
#include "schemas/base/time.hpp"

namespace moetier::coordinator {

inline constexpr std::size_t k_connections_max = 256;
inline constexpr std::size_t k_queued_bytes_max = 4 * k_rpc_message_bytes_max;  // to one client
inline constexpr duration_ns k_accept_pause = 100 * k_millisecond;  // out of descriptors

}  // namespace moetier::coordinator
