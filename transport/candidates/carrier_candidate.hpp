#pragma once
// What one carrier declares before it is opened: the bits that schedulers and backends go by, its
// limits, and where it can run. The table is in the order in which AUTO tries them; a carrier that
// is not built stays in it and says so. Nothing here opens or probes anything. Thread: any
// (immutable values, pure functions).

#include <cstdint>
#include <span>
#include <string_view>

#include "schemas/resolution/deployment.hpp"
#include "schemas/resolution/environment.hpp"
#include "schemas/resolution/problem.hpp"
#include "schemas/resolution/verdict.hpp"

namespace moetier::transport {

struct exchange_bits {
  bool lockstep = true;
  bool uniform_rows = false;
  std::uint32_t min_rows = 0;  // a member without tokens sends so many; 0 or 1
  bool post_quant_dispatch = true;
  bool quantises_internally = false;
  bool finalise_before_combine = true;
  bool carries_statistics = false;
  bool padding_trim = false;
  bool checkpointable = false;
  bool overlap_chunks = false;
  bool non_uniform_slots = false;
  bool dedup = false;       // one row per (token, worker), else per slot
  bool all_gather = false;  // every row to every worker
  bool exact_rows = true;   // unweighted rows can come back
};

// Checked before anything is allocated. 0 = no bound.
struct exchange_limits {
  std::uint32_t members = 0;
  std::uint32_t top_k = 0;
  std::uint32_t tokens = 0;        // of one source in a chunk
  std::uint32_t stride_bytes = 1;  // rows must be a multiple of it
};

struct carrier_candidate {
  std::string_view name;          // "ucx.two_sided"
  std::string_view short_name{};  // "ucx": what transport.carrier also takes
  bool by_request = false;        // never by AUTO
  bool needs_cuda = false;        // rows in device memory
  bool one_process = false;
  bool one_host = false;
  exchange_bits bits{};
  exchange_limits limits{};
};

std::span<const carrier_candidate> carrier_candidates() noexcept;

// What open_carrier() takes for the winner of a report: "ucx" for "ucx.two_sided".
constexpr std::string_view opened_as(std::string_view carrier) noexcept {
  return carrier.substr(0, carrier.find('.'));
}

// What the backend that is to be paired wants of a carrier.
struct carrier_wants {
  std::string_view backend{};  // its short name, for sentences
  bool all_gather_only = false;
};

// Whether the carrier can join this deployment on one worker. Asks about place, device, slots,
// limits, capabilities, and last whether it is built; the first reason stands. Requires: checked
// values.
resolution::verdict can_implement(const carrier_candidate& candidate, const resolution::problem& p,
                                  const resolution::deployment& d, const resolution::environment& e,
                                  const carrier_wants& wants);

}  // namespace moetier::transport
