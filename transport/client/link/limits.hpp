#pragma once
// What the control link bounds, on both of its ends. Thread: any.

#include <cstddef>
#include <cstdint>

#include "schemas/base/limits.hpp"
#include "schemas/base/time.hpp"

namespace moetier::client {

inline constexpr std::uint16_t k_rpc_protocol_min = 1;
inline constexpr std::uint16_t k_rpc_protocol_max = 1;

// Frames (the first three are the protocol's).
inline constexpr std::uint32_t k_segments_max = 16;
inline constexpr std::size_t k_message_words_max = k_rpc_message_bytes_max / 8;
inline constexpr std::uint32_t k_questions_max = 256;          // unfinished calls per connection
inline constexpr std::size_t k_message_overhead_bytes = 4096;  // all but the tensors of a message
inline constexpr int k_nesting_max = 16;
inline constexpr std::size_t k_receive_buffer_bytes = 16 * 1024;
inline constexpr std::size_t k_body_step_bytes = 64 * 1024;  // first piece of a body's buffer

// Times.
inline constexpr duration_ns k_deadline_max = 600 * k_second;       // larger ones are cut to it
inline constexpr duration_ns k_answer_slack = 100 * k_millisecond;  // a server's, after a deadline
inline constexpr duration_ns k_write_stall_max = k_second;          // without a byte taken: gone
inline constexpr duration_ns k_connect_attempt_max = k_second;
inline constexpr duration_ns k_resume_limit = 3 * k_second;  // a starting tier collects its workers
inline constexpr duration_ns k_ping_interval = 250 * k_millisecond;
inline constexpr duration_ns k_ping_limit = k_second;  // unanswered: reconnect
inline constexpr duration_ns k_watch_limit = 10 * k_second;
inline constexpr duration_ns k_backoff_first = 20 * k_millisecond;
inline constexpr duration_ns k_backoff_max = 250 * k_millisecond;

inline constexpr std::size_t k_sessions_per_link_max = 64;
inline constexpr std::size_t k_requests_per_link_max = 256;  // callers' threads inside one link

}  // namespace moetier::client
