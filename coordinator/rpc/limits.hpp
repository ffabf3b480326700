#pragma once
// What the RPC server bounds beside the protocol's own limits. Thread: any.

#include <cstddef>
#include <cstdint>

#include "coordinator/rpc/connection_book.hpp"
#include "schemas/base/limits.hpp"
#include "schemas/base/time.hpp"

namespace moetier::coordinator {

inline constexpr connection_limits k_client_connections{.unproven_max = 256,
                                                        .proven_max = 256,
                                                        .peer_max = 128,
                                                        .first_word = 5 * k_second,
                                                        .silence = 30 * k_second,
                                                        .yielding_after = 2 * k_second};
// Of the local socket: apart, so that clients lock no administrator out.
inline constexpr connection_limits k_admin_connections{.unproven_max = 16,
                                                       .proven_max = 16,
                                                       .peer_max = 16,
                                                       .first_word = 5 * k_second,
                                                       .silence = 30 * k_second,
                                                       .yielding_after = 2 * k_second};
inline constexpr duration_ns k_sweep_interval = 500 * k_millisecond;  // looks for late ones
inline constexpr std::size_t k_queued_bytes_max = 4 * k_rpc_message_bytes_max;  // to one client
// Events on their way to the core: sessions are opened while there are fewer.
inline constexpr std::uint64_t k_backlog_max = 1024;
inline constexpr std::uint64_t k_shed_percent = 92;    // batch sessions from here on
inline constexpr std::uint64_t k_refuse_percent = 95;  // all
// Renewals that follow each other faster than this are one.
inline constexpr duration_ns k_renewal_pause = 10 * k_millisecond;
// Each repeat of a forward that waits costs a copy of its answer when that comes.
inline constexpr std::uint32_t k_waiting_repeats_max = 2;
inline constexpr duration_ns k_repeat_pause = 10 * k_millisecond;
inline constexpr duration_ns k_watch_pause = 100 * k_millisecond;   // for one that had to yield
inline constexpr duration_ns k_accept_pause = 100 * k_millisecond;  // out of descriptors

}  // namespace moetier::coordinator
