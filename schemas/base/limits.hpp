#pragma once
// Bounds that hold for the whole tier and are part of the protocol. Each folder has a limits.hpp of
// its own for what only it bounds. A value at the limit works; limit + 1 is a typed error. Thread:
// any.

#include <cstddef>
#include <cstdint>

namespace moetier {

inline constexpr std::uint32_t k_experts_max = 4096;  // per layer
inline constexpr std::uint32_t k_top_k_max = 256;
inline constexpr std::uint32_t k_layers_max = 1024;
inline constexpr std::uint32_t k_hidden_max = 65536;
inline constexpr std::uint32_t k_intermediate_max = 262144;
inline constexpr std::uint32_t k_slots_per_layer_max = 32767;  // over all workers
inline constexpr std::uint32_t k_slots_per_worker_max = 1024;  // per layer
inline constexpr std::uint32_t k_workers_max = 64;             // default of transport.max_workers
inline constexpr std::uint32_t k_sources_max = 64;             // default of transport.max_sources
inline constexpr std::uint32_t k_sessions_max = 64;            // default of session.max
inline constexpr std::uint32_t k_tokens_max =
    4096;  // default of session.max_tokens, per micro-batch
inline constexpr std::uint32_t k_micro_batches_max = 4;
inline constexpr std::uint32_t k_repeat_count_max = 16;
inline constexpr std::uint32_t k_shares_unit = 65536;  // an expert's shares sum to this

inline constexpr std::size_t k_envelope_bytes_max =
    64 * 1024;  // one actor message; snapshots go in pieces
inline constexpr std::size_t k_rpc_message_bytes_max = 8 * 1024 * 1024;
inline constexpr std::size_t k_worker_name_bytes_max = 64;
inline constexpr std::size_t k_address_bytes_max = 4096;  // a carrier's address blob

}  // namespace moetier
