#pragma once
// A source session: the source half of the layer for one session. It routes, picks replicas from
// the newest routing snapshot, packs rows per worker, dispatches, waits, sums in fixed order. Fast
// clients (through the C ABI) and the gateway use this same class; it knows the carrier only by its
// interface and the coordinator not at all: snapshots are handed in.
//
// A call: submit() copies its inputs, routes, picks, sends; collect() waits, sums, and, when a
// worker was lost or late and a newer snapshot of the same generation comes in time, replays that
// call by itself. Workers that the coordinator suspects, or that made a call late, get no rows
// where another replica is there; a call that waits for a suspect is replayed on one. One ticket
// per micro-batch is outstanding. A call ends exactly once, in a full result or a typed error, at
// the latest 100 ms after its deadline. After a failed call later submits of the step answer
// SKIPPED until the step is begun anew.
//
// Thread: owner (serialised by the caller). No allocation after open.

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "kernels/backend.hpp"
#include "schemas/base/error.hpp"
#include "schemas/base/time.hpp"
#include "transport/client/source/layer_router.hpp"
#include "transport/client/source/source_meter.hpp"
#include "transport/communication.hpp"
#include "transport/snapshot/routing_snapshot.hpp"
#include "transport/snapshot/suspicion.hpp"
#include "transport/waits/wait_ring.hpp"

namespace moetier::client {

struct source_session_options {
  session_id session{};
  source_id source{};
  incarnation_id incarnation{};
  std::uint32_t tokens_max = 0;     // per micro-batch
  std::uint32_t micro_batches = 1;  // 1..4
  std::uint32_t top_k = 0;
  kernels::return_mode mode = kernels::return_mode::partial;
  std::uint32_t rows_per_chunk_max = 0;  // 0 = tokens_max
  bool shared_experts = false;           // the tier computes and adds them
  bool flags_bad_rows = false;           // a bad row of logits gets ids -1 and a flag, not an error
  duration_ns call_deadline = k_second;
  // Never blocks: tokens of steps that this session may take a second, as of now; 0 = no limit.
  // Empty = none.
  std::function<std::uint64_t()> tokens_per_second{};
  std::uint32_t replays_max = 2;
  duration_ns spin = 50 * k_microsecond;  // before a waiting collect() sleeps
  // Blocks until a snapshot newer than the argument is there, at most so long; null if none came,
  // at once if none will: the session is lost.
  std::function<transport::snapshot_ptr(const transport::routing_snapshot&, duration_ns)>
      wait_newer{};
  // Never blocks: the newest snapshot known.
  std::function<transport::snapshot_ptr()> newest{};
  // Never blocks: whom the coordinator suspects; null = nobody. Empty = it is not known.
  std::function<transport::suspicion_ptr()> suspicion{};
  // Never blocks: told when a call ends in TIMEOUT because this worker had not answered.
  std::function<void(worker_id, incarnation_id)> report_late{};
  // Set: every wait for a worker is recorded there, and on_timeout hears of a call that ends in
  // TIMEOUT, on the caller's thread. The ring outlives the session.
  transport::wait_ring* waits = nullptr;
  std::function<void(const transport::wait_record&)> on_timeout{};
  // Set: calls may come without logits and ids (gate = tier). Asked for every layer by open().
  router_source router{};
  source_meter* meter = nullptr;  // (optional) counts what this session does; outlives it
};

// One call's inputs. Shapes by `tokens`; pitches in bytes, last dimension contiguous.
struct layer_call {
  layer_id layer{};
  std::uint16_t micro_batch = 0;
  std::uint16_t repeat_idx = 0;
  std::uint16_t repeat_count = 1;
  std::uint32_t tokens = 0;
  const void* hidden = nullptr;  // [tokens, H] f32, f16 or bf16
  dtype hidden_type = dtype::f32;
  std::size_t hidden_pitch = 0;
  const void* logits = nullptr;  // [tokens, columns], or null with ids + weights
  dtype logits_type = dtype::f32;
  std::size_t logits_pitch = 0;
  std::span<const std::int32_t> ids{};          // [tokens, k]
  std::span<const float> weights{};             // [tokens, k]
  std::span<const std::int32_t> token_ids{};    // [tokens], needed where the layer hashes them
  std::span<const std::int32_t> adapter_ids{};  // [tokens], -1 none; empty = none
  duration_ns deadline = 0;                     // 0 = the session's
};

// Where collect() writes: [tokens, H] in `type`; may be the hidden tensor itself. Optional routing
// as it was used.
struct layer_result {
  void* output = nullptr;
  dtype type = dtype::f32;
  std::size_t pitch = 0;
  std::span<std::int32_t> ids{};  // empty = not wanted
  std::span<float> weights{};
  std::span<std::uint8_t> bad_rows{};  // [tokens], 1 = the row was not routed; empty = not wanted
};

struct call_times {  // of the last collected call, nanoseconds; for benches and metrics
  duration_ns route = 0;
  duration_ns pack = 0;
  duration_ns wait = 0;
  duration_ns sum = 0;
  duration_ns total = 0;
  duration_ns air = 0;   // from the last row's sending until the last return was in
  duration_ns held = 0;  // of that, by the worker that answered last
  std::uint32_t replays = 0;
};

struct call_end {  // of the last call that ended in collect(), for status words
  status code = status::ok;
  std::uint8_t attempt = 0;
  worker_id worker{};  // that was late, lost, stale, ... if code is not ok
  std::uint64_t bytes_due = 0;
  std::uint64_t bytes_seen = 0;
  duration_ns age = 0;
};

class source_session {
 public:
  virtual ~source_session() = default;

  // Makes the source's half of the data plane and all buffers. Nothing is attached yet: address()
  // and shape() go to the coordinator, which attaches the source to every worker.
  static expected<std::unique_ptr<source_session>> open(transport::Communication& carrier,
                                                        const source_session_options& options,
                                                        transport::snapshot_ptr snapshot);

  virtual const transport::member_address& address() const noexcept = 0;
  virtual const transport::source_shape& shape() const noexcept = 0;

  // Takes the newest snapshot, next step number (or the same one with another attempt).
  // reason::no_credit with retry_after when its tokens are used up, or when a worker was overloaded
  // a moment ago; a step that began, and its replays, are not held up any more. A
  // replay may wait for a newer snapshot: as long as a call may take, and no longer than `limit`.
  virtual expected<void> step_begin(bool replay, duration_ns limit) = 0;  // 0 = none
  expected<void> step_begin(bool replay) { return step_begin(replay, 0); }
  virtual expected<void> submit(const layer_call& call) = 0;
  virtual expected<void> collect(std::uint16_t micro_batch, const layer_result& result) = 0;
  virtual expected<void> step_end() = 0;
  virtual void cancel() = 0;  // ends what is outstanding

  virtual const transport::routing_snapshot& snapshot() const noexcept = 0;
  virtual std::uint64_t step() const noexcept = 0;
  virtual const call_times& last_times() const noexcept = 0;
  virtual const call_end& last_end() const noexcept = 0;
  virtual transport::carrier_counters carrier_counts() const noexcept = 0;
};

}  // namespace moetier::client
