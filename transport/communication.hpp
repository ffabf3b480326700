#pragma once
// Communication: how rows go from a source to a worker and results come back. It knows members,
// rows and bytes, never experts' arithmetic. A carrier (in_process, ucx, later nvlink, nccl)
// implements the two halves below; both are made by one carrier object. One half is owned and
// progressed by one thread.
//
// An *exchange* is one chunk of one call with one worker. Source half: FREE -open-> OPEN
// -dispatch-> SENT -(return is in)-> DONE -release-> FREE; a missed deadline makes SENT -> LATE,
// and that bank is free again only when its late return is in or its worker is detached. Worker
// half, per (source, bank): FREE -> ARRIVED -> HELD -give_back-> FREE. A call its state forbids
// answers comm_status::sequence and changes nothing. Banks, stamps and credits belong to the
// (source, worker) pair, so a frozen worker stops only exchanges that need it. An idle source
// publishes nothing and blocks nobody.
//
// A message is header, then payload by payload: payload p of all rows lies at offset sum over q<p
// of rows * stride_q. Payload 0: hidden rows, H elements of the dispatch dtype, stride rounded up
// to 16. Payload 1: row records (below). A return's payload: H elements of the combine dtype per
// returned row, stride rounded up to 16. partial: one row per dispatched row, same order. exact:
// one row per (row, position) that names a slot of this worker, in (row, position) order. Rows in a
// worker are in ascending token order.
//
// All memory exists when a half is made or a member is attached; dispatch, poll and give_back
// allocate nothing.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "schemas/base/dtype.hpp"
#include "schemas/base/error.hpp"
#include "schemas/base/ids.hpp"
#include "schemas/base/limits.hpp"
#include "schemas/base/time.hpp"
#include "schemas/wire/wire_header.hpp"

namespace moetier::transport {

// Row record of payload 1 for k positions: u32 token, i32 adapter (-1 none), then i32 slots[k]
// (global slots; -1 = not for this worker; shared_slot(i) = the receiver's own shared expert i),
// then f32 weights[k]. Stride = record_stride(k).
inline constexpr std::size_t k_record_head = 8;
constexpr std::size_t padded_stride(std::size_t bytes) noexcept { return (bytes + 15) / 16 * 16; }
constexpr std::size_t record_stride(std::uint32_t k) noexcept {
  return padded_stride(k_record_head + 8 * std::size_t{k});
}
constexpr std::int32_t shared_slot(std::uint32_t i) noexcept {
  return -2 - static_cast<std::int32_t>(i);
}
// Which shared expert a record's slot names, or -1.
constexpr std::int32_t shared_expert_of(std::int32_t slot) noexcept {
  return slot <= -2 ? -2 - slot : -1;
}

// Declared capabilities of a carrier; a conformance test proves each one that is set.
struct comm_capabilities {
  bool lockstep = false;       // an exchange needs acts of other sources
  bool in_place = false;       // Z: rows are used where they landed
  bool dedup = false;          // D: one row per (token, worker)
  bool any_roles = false;      // A: any number of sources and workers
  bool independent = false;    // I
  bool mask = false;           // M: a member is left out without rebuilding
  bool elastic = false;        // E: a member joins without rebuilding
  bool survives_kill = false;  // S
  bool host_memory = false;    // H
  bool device_memory = false;  // V
  bool cross_host = false;     // X
  bool ordered_rows = false;   // O
  bool fixed_sum = false;      // F
  bool shared_device = false;  // P
  bool non_uniform_slots = false;
};

enum class member_role : std::uint8_t { source = 1, worker = 2, both = 3 };

// Result of a data-plane call: small, no text.
enum class comm_status : std::uint8_t {
  ok = 0,
  no_credit,
  sequence,
  capacity,
  unknown_member,
  peer_lost,
  timeout,
  stale,
  plan_mismatch,
  peer_refused,
  corrupt,
  closed
};
std::string_view comm_status_name(comm_status s) noexcept;

// What names an exchange: copied into the wire header and compared on both ends.
struct exchange_key {
  session_id session;
  std::uint64_t step = 0;
  std::uint8_t attempt = 0;
  layer_id layer;
  std::uint16_t micro_batch = 0;
  std::uint16_t chunk = 0;
  std::uint16_t chunk_count = 1;
  std::uint16_t repeat_idx = 0;
  std::uint16_t repeat_count = 1;
  epoch_number epoch;
  generation_number generation;
  plan_hash plan;
  std::uint64_t resolution_id = 0;
  std::uint8_t return_mode = 0;  // kernels::return_mode, opaque here
  std::uint8_t flags = 0;        // k_flag_*

  bool operator==(const exchange_key&) const = default;
};
inline constexpr std::uint8_t k_flag_warmup = 1;   // rows do not count in statistics
inline constexpr std::uint8_t k_flag_decided = 2;  // whether there is time is another worker's word

// What a source and a worker agree on when the source is attached.
struct source_shape {
  std::uint32_t rows_max = 0;         // Tmax: rows per exchange
  std::uint32_t hidden_stride = 0;    // bytes of payload 0 per row
  std::uint32_t top_k = 0;            // positions of a row record: k, and the shared experts
  std::uint32_t return_stride = 0;    // bytes of one returned row
  std::uint32_t return_rows_max = 0;  // partial: rows_max; exact: rows_max * k
  std::uint32_t banks = 2;            // exchanges open at once with one worker, 2..4

  bool operator==(const source_shape&) const = default;
};

struct source_identity {
  source_id source;
  session_id session;
  incarnation_id incarnation;
};

struct worker_identity {
  worker_id worker;
  incarnation_id incarnation;
};

// For a worker half that is made before the coordinator has numbered its worker: it takes rows for
// any number and answers under the one they name. Whose rows they are, the source's incarnation and
// session say.
inline constexpr worker_id k_worker_unnumbered{0xffff};

using member_address =
    std::vector<std::byte>;  // opaque, made by the peer's half; travels in control messages only

// Handle of one open exchange of a source half; 0 is never valid.
using exchange_ticket = std::uint32_t;

struct returned {
  exchange_ticket ticket = 0;
  comm_status result = comm_status::ok;  // ok: a return is in, whatever its status; or why not
  status worker_status = status::ok;     // what the worker answered; unless ok there are no rows
  std::uint64_t detail = 0;              // stale: newest generation the worker holds
  std::uint32_t rows = 0;
  std::span<const std::byte> payload{};  // rows * return_stride, valid until release(ticket)
  duration_ns held_ns = 0;               // by the worker, from its header's arrival to its return
};

// What a half has seen since it was made.
struct carrier_counters {
  std::uint64_t frames_dropped =
      0;                           // failed the header's check; unknown member, incarnation, stamp
  std::uint64_t late_returns = 0;  // dropped by a source half
  std::uint64_t bytes_sent = 0;    // headers and payloads
  std::uint64_t bytes_received = 0;
  std::uint64_t messages_sent = 0;
  std::uint64_t messages_received = 0;
  std::uint64_t peers_lost = 0;     // without a word
  std::uint64_t peers_left = 0;     // said that they go: sessions that closed, workers that ended
  std::uint64_t rows_corrupt = 0;   // exchanges whose payload or sizes were wrong
  std::uint64_t stall_ns = 0;       // of a worker half: that the library took to let go of returns
  std::uint64_t requests_left = 0;  // of detached peers, not ended by the library: memory they hold

  carrier_counters& operator+=(const carrier_counters& other) noexcept;
};

// Thread: owner (one thread; calls may move between threads when serialised by the caller).
class SourceHalf {
 public:
  virtual ~SourceHalf() = default;
  virtual const member_address& address() const noexcept = 0;  // for ATTACH

  // Makes room for a worker: regions and banks. Off the layer's path. A worker's new incarnation is
  // a new attach; the same one again has no effect while it is alive.
  virtual expected<void> attach_worker(const worker_identity& worker,
                                       const member_address& address) = 0;
  // Frees its banks. SENT exchanges, and DONE ones that poll() has not handed out, are reported as
  // peer_lost; its payloads must no longer be read. Unknown worker: no effect.
  virtual void detach_worker(worker_id worker) = 0;

  // Takes a bank of the pair and the next stamp. no_credit when all are in use or LATE, peer_lost
  // while the worker is attached but gone.
  virtual comm_status open(worker_id worker, const exchange_key& key, exchange_ticket& ticket) = 0;
  // The send region of an OPEN exchange, laid out for `rows` rows: payload p at its offset. Empty
  // if the state forbids.
  virtual std::span<std::byte> send_region(exchange_ticket ticket, std::uint32_t rows) = 0;
  // Publishes the rows. budget_us: what is left until the deadline. No host wait. Unless ok nothing
  // was sent and the exchange is as it was: release() it.
  virtual comm_status dispatch(exchange_ticket ticket, std::uint32_t rows,
                               std::uint32_t budget_us) = 0;
  // Progresses and reports ended exchanges (returns, lost peers) in any order; returns how many
  // were written.
  virtual std::size_t poll(std::span<returned> out) = 0;
  // Gives up waiting: SENT -> LATE. Nothing more is reported of it. The worker is told, so that it
  // need not compute what nobody waits for. Its late return is dropped and counted, and frees the
  // bank. sequence: it has ended already, poll() has or had it.
  virtual comm_status expire(exchange_ticket ticket) = 0;
  // DONE or OPEN -> FREE; the payload of its `returned` must no longer be read.
  virtual void release(exchange_ticket ticket) = 0;

  // Blocks until poll() may have work or the time is over: spins `spin`, then sleeps on the
  // carrier's descriptor.
  virtual void wait(std::chrono::nanoseconds spin, std::chrono::nanoseconds limit) = 0;
  // (optional) All zero for a half that does not count.
  virtual carrier_counters counters() const noexcept { return {}; }
};

// Handle of one held exchange of a worker half; 0 is never valid.
using arrival_ticket = std::uint64_t;

struct arrival {
  arrival_ticket ticket = 0;
  source_id source;
  exchange_key key;
  std::uint32_t rows = 0;
  std::uint32_t budget_us = 0;  // left at the source when it was sent
  // rows * hidden_stride; both are valid until give_back or detach_source.
  std::span<const std::byte> hidden;
  std::span<const std::byte> records;   // rows * record_stride(top_k)
  const source_shape* shape = nullptr;  // valid until detach_source
  time_ns admitted_at = 0;              // its header was here
  time_ns landed_at = 0;                // all of it was
  // Source incarnation, sizes and checks have been verified; generation and plan hash are the
  // engine's to judge.
};

// A source whose connection broke while both ends live is connected to anew when it dispatches
// again; its attachment and what is held of it stay.
// Thread: engine (owner), but wake(): any.
class WorkerHalf {
 public:
  virtual ~WorkerHalf() = default;
  virtual const member_address& address() const noexcept = 0;  // for snapshots

  // Allocates the pair's banks. Idempotent for the same identity and shape; another incarnation of
  // a source replaces it.
  virtual expected<void> attach_source(const source_identity& source, const source_shape& shape,
                                       const member_address& address) = 0;
  // Its arrivals, held ones too, are gone: their rows must no longer be read.
  virtual void detach_source(source_id source) = 0;

  // Progresses and reports new arrivals, oldest first; returns how many were written.
  virtual std::size_t poll(std::span<arrival> out) = 0;
  // Tickets that poll() reported and whose sources wait no more; returns how many were written.
  // They are still to be given back. (optional) None: the half hears of none.
  virtual std::size_t poll_given_up(std::span<arrival_ticket> out) {
    static_cast<void>(out);
    return 0;
  }
  // Sources whose connection broke, which spoke again and could not be connected to: no return can
  // reach them any more. Each is told once; returns how many were written. (optional) None.
  virtual std::size_t poll_unreached(std::span<source_id> out) {
    static_cast<void>(out);
    return 0;
  }
  // The return region of a HELD exchange, return_rows_max rows. Empty if the ticket is not held
  // (its source is gone).
  virtual std::span<std::byte> return_region(arrival_ticket ticket) = 0;
  // Publishes `rows` result rows, or 0 rows and a status other than ok; `detail` travels along
  // (stale: generation held). The exchange's memory must no longer be touched. No host wait.
  // unknown_member: its source was detached. peer_lost: its source is gone, or came back over
  // another connection and waits for it no more; the bank is free.
  virtual comm_status give_back(arrival_ticket ticket, std::uint32_t rows, status result,
                                std::uint64_t detail) = 0;

  virtual void wait(std::chrono::nanoseconds spin, std::chrono::nanoseconds limit) = 0;
  virtual void wake() noexcept = 0;  // ends a wait() early
  virtual carrier_counters counters() const noexcept = 0;
};

struct carrier_options {
  std::string listen = "127.0.0.1";  // loopback keeps the carrier on lo
  bool checksum_payload = false;
  bool allow_tcp = true;
};

struct source_options {
  source_identity identity;
  source_shape shape;
  std::uint32_t workers_max = k_workers_max;
};

// (interface) Whoever wants to know where a worker half keeps rows, because a device shall read and
// write them in place. Called when a pair is attached and when nobody can touch its memory any
// more, which may be after the half is gone. Thread: owner of the half.
class RowMemoryWatch {
 public:
  virtual ~RowMemoryWatch() = default;
  virtual void made(std::span<std::byte> block) noexcept = 0;
  virtual void going(std::span<std::byte> block) noexcept = 0;  // still there
};

struct worker_options {
  worker_identity identity;
  std::uint32_t sources_max = k_sources_max;
  std::shared_ptr<RowMemoryWatch> row_memory{};  // (optional)
};

// A carrier. Thread: any for queries; make_* once per member.
class Communication {
 public:
  virtual ~Communication() = default;
  virtual std::string_view name() const noexcept = 0;  // "in_process", "ucx.two_sided"
  virtual comm_capabilities capabilities() const noexcept = 0;
  virtual expected<std::unique_ptr<SourceHalf>> make_source(const source_options& options) = 0;
  virtual expected<std::unique_ptr<WorkerHalf>> make_worker(const worker_options& options) = 0;
  virtual std::string describe() const = 0;  // lanes read back from the library, for logs at start
};

// Loads a carrier by name. "in_process" is built in; "ucx" is a module found beside this library or
// executable and opened at run time, after its environment is set, so that programs that never ask
// for it never load UCX. reason::carrier_unavailable names what lacks.
expected<std::unique_ptr<Communication>> open_carrier(std::string_view name,
                                                      const carrier_options& options);

}  // namespace moetier::transport
