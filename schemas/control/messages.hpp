#pragma once
// Control messages between the coordinator and a worker, as plain values. schemas/control.capnp
// documents the same messages and is how they travel (codec.hpp); an actor carries only the encoded
// bytes. Every command carries epoch, generation, plan hash and the worker's incarnation; repeats
// change nothing. There is no float in any of them.
//
// The story: a worker says `hello` with what its machine can do; the coordinator answers `welcome`
// (its id and slots) or `refused`. A plan reaches it as `prepare`, with what was resolved; it makes
// the backend, loads and answers `prepared` with the checksum of every slot; after the durable
// decision comes `commit`, answered `committed`. `abort` before the decision undoes a prepare.
// `release` frees what a committed plan no longer names, answered `released`. Sources come and go
// by `attach_source` / `source_attached` and `detach_source`. `heartbeat` and `heartbeat_answer`
// run both ways all the time, and `probe` asks for a beat at once; `load_report` carries counts;
// `leaving` announces a worker's orderly end. In a tier that runs adapters they come and go by
// `load_adapter` and `drop_adapter`; `adapter_state` tells how a load ended. Thread: any (values).

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "schemas/base/deadline_class.hpp"
#include "schemas/base/ids.hpp"

namespace moetier::control {

inline constexpr std::uint32_t k_protocol_version = 5;
inline constexpr std::size_t k_environment_bytes_max = 32 * 1024;
inline constexpr std::size_t k_resolution_bytes_max = 256 * 1024;
inline constexpr std::size_t k_sources_listed_max = 1024;  // places of a worker's attach table
inline constexpr std::uint32_t k_tenant_weight_max = 1000;
inline constexpr std::size_t k_adapters_max = 64;  // of a tier at once
inline constexpr std::size_t k_adapter_path_bytes_max = 1024;
inline constexpr std::uint32_t k_adapter_ids_max = 1u << 31;  // rows carry them as i32

enum class generation_state : std::uint8_t {
  preparing = 0,
  prepared = 1,
  serving = 2,
  draining = 3
};

enum class device_state : std::uint8_t {
  none = 0,  // the processor computes
  sound = 1,
  lost = 2  // it failed: this process computes nothing more and is about to end
};

// The least severe line that a worker writes, once somebody has set it while the tier runs.
enum class log_threshold : std::uint8_t {
  as_configured = 0,
  debug = 1,
  info = 2,
  warn = 3,
  error = 4,
  off = 5
};

struct held_generation {
  generation_number generation;
  plan_hash plan;
  generation_state state = generation_state::preparing;
  bool operator==(const held_generation&) const = default;
};

// What a session was granted, as far as a coordinator that starts anew must know it.
struct session_terms {
  std::uint32_t tokens_max = 1;     // of a call; an exchange may carry fewer
  std::uint32_t micro_batches = 1;  // calls open at once, 1..4
  std::uint32_t top_k = 1;          // routed experts of a token, 1..256
  bool shared_experts = false;      // the tier computes and adds them
  bool operator==(const session_terms&) const = default;
};

// A source as the workers' attach tables know it.
struct source_attachment {
  source_id source;
  session_id session;
  incarnation_id incarnation;
  std::uint32_t rows_max = 0;
  std::uint32_t hidden_stride = 0;
  std::uint32_t top_k = 0;
  std::uint32_t return_stride = 0;
  std::uint32_t return_rows_max = 0;
  std::uint32_t banks = 2;
  std::uint32_t weight = 1;  // of its tenant
  deadline_class urgency = deadline_class::decode;
  session_terms terms;
  std::string tenant;
  std::vector<std::uint8_t> address;
  bool operator==(const source_attachment&) const = default;
};

// A low-rank adapter of routed experts as workers know it.
struct held_adapter {
  std::uint32_t adapter = 0;  // id that rows name
  std::string name;           // for people
  std::string path;           // absolute directory that every worker reads it from
  bool operator==(const held_adapter&) const = default;
};

struct hello {  // worker -> coordinator, first on every link
  std::uint32_t protocol = k_protocol_version;
  std::string name;
  incarnation_id incarnation;
  std::uint64_t node = 0;  // identity of the actor node; equal to the coordinator's own: refused
  epoch_number highest_epoch;
  std::uint64_t model_fingerprint = 0;
  std::uint64_t checkpoint_digest = 0;
  std::uint32_t slots = 0;                // per layer; 0 = whatever the partition gives
  std::vector<std::uint8_t> environment;  // document of resolution::environment, opaque here
  std::uint64_t resolution = 0;           // what its serving generation was built by; 0 = none
  std::string carrier;
  std::vector<std::uint8_t> address;        // data plane
  std::uint64_t heartbeat_interval_ns = 0;  // must equal the coordinator's
  std::uint64_t heartbeat_timeout_ns = 0;
  std::vector<held_generation> held;
  std::vector<std::uint64_t> held_checksums;  // of the serving generation, as in `prepared`
  std::uint64_t held_shared_digest = 0;
  std::vector<source_attachment> sources;
  std::vector<held_adapter> adapters;
  bool operator==(const hello&) const = default;
};
struct welcome {
  worker_id worker;
  incarnation_id incarnation;
  epoch_number epoch;
  std::uint32_t first_slot = 0;
  std::uint32_t slots = 0;
  bool operator==(const welcome&) const = default;
};
struct refused {  // either way; a worker refuses commands, the coordinator refuses a join
  enum class why : std::uint8_t {
    stale_epoch = 0,
    busy = 1,
    mismatch = 2,
    unknown_generation = 3,
    join = 4,
    load_failed = 5,
    prepare_failed = 6  // the resolved backend cannot be made here or fails its self-test
  };
  why cause = why::stale_epoch;
  epoch_number epoch;  // the refuser's highest
  generation_number generation;
  incarnation_id incarnation;
  std::string text;  // for the log and the operator, never for a client
  bool operator==(const refused&) const = default;
};
struct prepare {
  epoch_number epoch;
  generation_number generation;
  plan_hash plan;
  incarnation_id incarnation;
  std::vector<std::uint8_t> placement;   // eplb::placement canonical bytes, opaque here
  std::vector<std::uint8_t> resolution;  // canonical resolution report, opaque here
  std::uint32_t shared_experts = 0;      // pseudo-experts to hold beside the slots of every layer
  bool operator==(const prepare&) const = default;
};
struct prepared {
  epoch_number epoch;
  generation_number generation;
  plan_hash plan;
  incarnation_id incarnation;
  std::vector<std::uint64_t>
      checksums;  // by (layer index of the placement, local slot), XXH3-64; 0 = empty slot
  std::uint64_t shared_digest = 0;  // of the shared experts' checksums, XXH3-64; 0 = none held
  bool operator==(const prepared&) const = default;
};
struct abort_plan {
  epoch_number epoch;
  generation_number generation;
  plan_hash plan;
  incarnation_id incarnation;
  bool operator==(const abort_plan&) const = default;
};
struct commit {
  epoch_number epoch;
  generation_number generation;
  plan_hash plan;
  incarnation_id incarnation;
  bool operator==(const commit&) const = default;
};
struct committed {
  epoch_number epoch;
  generation_number generation;
  plan_hash plan;
  incarnation_id incarnation;
  bool operator==(const committed&) const = default;
};
struct release {
  epoch_number epoch;
  generation_number generation;  // everything older than this goes
  incarnation_id incarnation;
  bool operator==(const release&) const = default;
};
struct released {
  epoch_number epoch;
  generation_number generation;
  incarnation_id incarnation;
  bool operator==(const released&) const = default;
};
struct attach_source {
  epoch_number epoch;
  source_attachment source;
  bool operator==(const attach_source&) const = default;
};
struct source_attached {
  incarnation_id worker_incarnation;
  source_id source;
  incarnation_id incarnation;
  bool accepted = false;
  std::string text;   // when not accepted
  bool gone = false;  // refused for good: this session was detached here, and its rows dropped
  bool operator==(const source_attached&) const = default;
};
struct detach_source {
  epoch_number epoch;
  source_id source;
  incarnation_id incarnation;
  bool operator==(const detach_source&) const = default;
};
struct heartbeat {  // worker -> coordinator
  incarnation_id incarnation;
  std::uint64_t sequence = 0;
  epoch_number epoch;
  generation_number generation;  // serving
  std::uint64_t engine_tick =
      0;  // rises while the engine turns; a beat whose tick stands still counts as missed
  std::uint64_t tickets_ended = 0;
  std::uint64_t oldest_batch_ns = 0;  // age of the oldest call in the engine; 0 = idle
  device_state device = device_state::none;
  bool operator==(const heartbeat&) const = default;
};
struct heartbeat_answer {
  std::uint64_t sequence = 0;
  epoch_number epoch;
  generation_number generation;  // newest committed
  log_threshold log = log_threshold::as_configured;
  bool operator==(const heartbeat_answer&) const = default;
};
struct load_report {  // worker -> coordinator, once a second while anything changed
  incarnation_id incarnation;
  generation_number generation;
  plan_hash plan;
  std::uint64_t rows_total = 0;
  std::uint64_t calls_total = 0;
  std::vector<std::uint64_t>
      counts;  // selections by (layer index, local slot) since the generation began here
  bool operator==(const load_report&) const = default;
};
struct leaving {
  incarnation_id incarnation;
  bool operator==(const leaving&) const = default;
};
struct load_adapter {
  epoch_number epoch;
  held_adapter adapter;
  bool operator==(const load_adapter&) const = default;
};
struct drop_adapter {
  epoch_number epoch;
  std::uint32_t adapter = 0;
  bool operator==(const drop_adapter&) const = default;
};
struct adapter_state {
  incarnation_id incarnation;
  std::uint32_t adapter = 0;
  bool loaded = false;
  std::string text;  // when not loaded
  bool operator==(const adapter_state&) const = default;
};
struct probe {  // coordinator -> worker: a source found it late; it beats at once
  epoch_number epoch;
  incarnation_id incarnation;
  bool operator==(const probe&) const = default;
};

using message = std::variant<hello, welcome, refused, prepare, prepared, abort_plan, commit,
                             committed, release, released, attach_source, source_attached,
                             detach_source, heartbeat, heartbeat_answer, load_report, leaving,
                             load_adapter, drop_adapter, adapter_state, probe>;

}  // namespace moetier::control
