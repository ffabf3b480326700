#include <array>

#include "schemas/base/limits.hpp"
#include "transport/candidates/carrier_candidate.hpp"
#include "transport/exchange/limits.hpp"

namespace moetier::transport {
namespace {

constexpr exchange_limits k_host_limits{
    .members = k_pairs_max, .top_k = k_top_k_max, .tokens = k_rows_max};
constexpr exchange_limits k_window_limits{
    .members = 256, .top_k = k_top_k_max, .tokens = k_rows_max, .stride_bytes = 16};

// Rows go straight to those who want them, and no member waits for another.
constexpr exchange_bits k_independent{
    .lockstep = false, .carries_statistics = true, .non_uniform_slots = true, .dedup = true};

constexpr exchange_bits k_all_gather{.uniform_rows = true,
                                     .min_rows = 1,
                                     .carries_statistics = true,
                                     .non_uniform_slots = true,
                                     .dedup = true,
                                     .all_gather = true,
                                     .exact_rows = false};

constexpr exchange_bits with_overlap(exchange_bits bits) {
  bits.overlap_chunks = true;
  return bits;
}
constexpr exchange_bits with_sleep(exchange_bits bits) {
  bits.checkpointable = true;
  return bits;
}
constexpr exchange_bits without_statistics(exchange_bits bits) {
  bits.carries_statistics = false;
  return bits;
}
constexpr exchange_bits in_lockstep(exchange_bits bits) {
  bits.lockstep = true;
  return bits;
}
constexpr exchange_limits at_most_tokens(exchange_limits limits, std::uint32_t tokens) {
  limits.tokens = tokens;
  return limits;
}

constexpr std::uint32_t k_low_latency_tokens = 128;

constexpr std::array k_candidates = {
    carrier_candidate{.name = "in_process",
                      .one_process = true,
                      .bits = with_overlap(k_independent),
                      .limits = k_host_limits},
    carrier_candidate{.name = "nvlink.one_sided",
                      .short_name = "nvlink",
                      .needs_cuda = true,
                      .one_host = true,
                      .bits = with_sleep(k_independent),
                      .limits = k_window_limits},
    carrier_candidate{.name = "nvlink.low_latency",
                      .by_request = true,
                      .needs_cuda = true,
                      .one_host = true,
                      .bits = with_sleep(without_statistics(k_independent)),
                      .limits = at_most_tokens(k_window_limits, k_low_latency_tokens)},
    carrier_candidate{.name = "nccl.symmetric",
                      .needs_cuda = true,
                      .one_host = true,
                      .bits = k_independent,
                      .limits = k_window_limits},
    carrier_candidate{.name = "nvlink.two_sided",
                      .needs_cuda = true,
                      .one_host = true,
                      .bits = with_sleep(k_independent),
                      .limits = k_window_limits},
    carrier_candidate{.name = "nccl.all_to_all",
                      .short_name = "nccl",
                      .needs_cuda = true,
                      .bits = in_lockstep(k_independent),
                      .limits = k_host_limits},
    carrier_candidate{.name = "shared_memory",
                      .one_host = true,
                      .bits = with_overlap(k_independent),
                      .limits = k_host_limits},
    carrier_candidate{.name = "ucx.one_sided", .bits = k_independent, .limits = k_host_limits},
    carrier_candidate{.name = "ucx.two_sided",
                      .short_name = "ucx",
                      .bits = k_independent,
                      .limits = k_host_limits},
    carrier_candidate{.name = "nccl.all_gather",
                      .needs_cuda = true,
                      .bits = k_all_gather,
                      .limits = k_host_limits},
    carrier_candidate{.name = "ucx.all_gather", .bits = k_all_gather, .limits = k_host_limits},
};

}  // namespace

std::span<const carrier_candidate> carrier_candidates() noexcept { return k_candidates; }

}  // namespace moetier::transport
