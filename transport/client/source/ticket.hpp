#pragma once
// A ticket: one submitted call of one micro-batch, from its copied inputs to its summed rows. It
// cuts the call into chunks, keeps the exchanges in the air and sums a chunk as soon as all of its
// workers have answered; what the rows are is call_rows' matter. It decides no replay and reads no
// clock: the session that owns it does. All buffers exist from the start.
// Thread: owner.

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/backend.hpp"
#include "schemas/base/error.hpp"
#include "schemas/base/time.hpp"
#include "transport/client/source/call_rows.hpp"
#include "transport/client/source/gatekeeper.hpp"
#include "transport/client/source/row_arithmetic.hpp"
#include "transport/client/source/source_session.hpp"
#include "transport/client/source/worker_table.hpp"
#include "transport/communication.hpp"
#include "transport/snapshot/routing_snapshot.hpp"
#include "transport/step/step_plan.hpp"

namespace moetier::client {

enum class failure_kind : std::uint8_t { none, lost, late, stale, refused, corrupt };

struct call_failure {
  failure_kind kind = failure_kind::none;
  worker_id worker;
  status answered = status::ok;  // refused
  std::uint64_t held = 0;        // stale: the newest generation the worker holds
  std::uint64_t bytes_due = 0;   // late
  std::uint64_t bytes_seen = 0;

  explicit operator bool() const noexcept { return kind != failure_kind::none; }
};

// As a status of the outward list; none is ok, lost is UNAVAILABLE.
status status_of(const call_failure& failure) noexcept;

// One exchange that was answered: for the flight recorder.
struct answered_exchange {
  worker_id worker;
  std::uint16_t chunk = 0;
  std::uint64_t bytes_due = 0;
  std::uint64_t bytes_seen = 0;
  status outcome = status::ok;
};

// Sizes of a ticket's buffers; equal for all tickets of a session.
struct ticket_shape {
  call_shape call;
  std::uint32_t tokens_per_chunk_max = 0;
  std::uint32_t banks = 2;
  bool sums_early = false;  // other tickets may need its banks before it is collected
};

class ticket final {
 public:
  ticket(const ticket_shape& shape, const row_arithmetic& arithmetic);

  bool outstanding() const noexcept { return outstanding_; }
  std::uint32_t tokens() const noexcept { return rows_.tokens(); }
  layer_id layer() const noexcept { return key_.layer; }
  std::uint32_t chunks() const noexcept { return chunks_; }
  bool complete() const noexcept { return chunks_summed_ == chunks_; }
  bool fully_sent() const noexcept { return chunks_sent_ == chunks_; }
  const call_failure& failure() const noexcept { return failure_; }
  const transport::routing_snapshot& snapshot() const noexcept { return *snapshot_; }
  const call_rows& rows() const noexcept { return rows_; }
  // How long the worker that answered last held its rows.
  duration_ns held() const noexcept { return held_; }

  // Copies, widens and routes the inputs of a checked call. On error nothing is outstanding.
  expected<void> take(const layer_call& call, const transport::routing_snapshot& snapshot,
                      std::size_t layer_index, const layer_router* router);

  // Picks replicas by `snapshot` and makes the ticket ready to be sent (again) under `key`.
  // first_chunk: the step's number of its chunk 0. `avoid`: spans that get no rows where another
  // replica is live. reason::no_replica when an expert has none.
  expected<void> choose(transport::snapshot_ptr snapshot, const worker_table& workers,
                        const transport::exchange_key& key, source_id source,
                        std::uint32_t first_chunk, worker_mask avoid = 0);
  // Whether every row of it has a live replica outside of these spans, by a snapshot of its
  // generation.
  bool can_avoid(const transport::routing_snapshot& snapshot, const worker_table& workers,
                 worker_mask avoid) const noexcept;

  // Sends chunks in order until all are sent, a bank is missing, or a worker fails. A chunk takes
  // all of its banks or none, so tickets cannot block each other half way.
  void send(transport::SourceHalf& half, const worker_table& workers, std::uint32_t budget_us);

  // Takes over a report of the carrier; false if the exchange is not of this ticket.
  bool take_return(const transport::returned& report, transport::SourceHalf& half,
                   const worker_table& workers);

  // What the newest report that was taken over said.
  const answered_exchange& last_answer() const noexcept { return last_answer_; }

  // Where finished chunks are summed to from now on. Until then they are kept, or summed into a
  // buffer of the ticket if it sums early. Requires: the result fits tokens().
  void collect_into(const layer_result& result);
  // Sums every chunk whose workers have all answered, and gives its banks back.
  void settle(transport::SourceHalf& half, const worker_table& workers);

  // Workers that owe an answer, as a mask of spans, and what the first of them owes; when none
  // does but chunks wait for banks, those whose banks are missing.
  worker_mask awaited() const noexcept;
  void fail_late(const worker_table& workers) noexcept;
  void fail_late_of(std::size_t span, const worker_table& workers) noexcept;
  void fail_lost(worker_id worker) noexcept;
  bool uses(std::size_t span) const noexcept;

  // Gives all of its exchanges up; inputs stay, so it can be chosen and sent again.
  void abandon(transport::SourceHalf& half) noexcept;
  void end() noexcept {
    outstanding_ = false;
    snapshot_.reset();
  }

 private:
  enum class leg : std::uint8_t { none, opened, sent, done };
  struct exchange {
    transport::exchange_ticket handle = 0;
    leg state = leg::none;
    std::uint32_t rows = 0;      // dispatched
    std::uint32_t rows_due = 0;  // to come back
    std::span<const std::byte> payload;
  };
  // A chunk in the air.
  struct flight {
    bool used = false;
    std::uint32_t chunk = 0;
    transport::split_part tokens;
    worker_mask workers = 0;
    worker_mask awaited = 0;
    std::vector<exchange> by_span;
  };

  flight* free_flight() noexcept;
  void count_rows(flight& f, const worker_table& workers) noexcept;
  bool open_all(flight& f, transport::SourceHalf& half, const worker_table& workers);
  void sum(const flight& f, const worker_table& workers) noexcept;

  ticket_shape shape_;
  const row_arithmetic& arithmetic_;
  std::size_t return_stride_;

  bool outstanding_ = false;
  transport::snapshot_ptr snapshot_;
  transport::exchange_key key_;
  std::uint32_t chunks_ = 0;
  std::uint32_t chunks_sent_ = 0;  // chunks are sent in order
  std::uint32_t chunks_summed_ = 0;
  worker_mask without_bank_ = 0;
  call_failure failure_;
  answered_exchange last_answer_;
  duration_ns held_ = 0;
  gatekeeper gate_;
  layer_result result_;  // output null = not being collected

  call_rows rows_;
  std::array<call_rows::traffic, k_spans_max> traffic_;  // of the chunk being sent
  std::vector<float> early_;                             // [tokens_max, H] if sums_early
  std::vector<bool> early_summed_;                       // [chunks_max]
  std::vector<float> row_;  // [H]: sum of a row that is rounded on its way out
  std::vector<flight> flights_;
};

}  // namespace moetier::client
