#pragma once
// The client's control link: one object per service, one thread inside (the KJ event loop) that
// speaks Cap'n Proto RPC with the coordinator, keeps the lease of every session renewed, receives
// routing snapshots as they are published and reconnects by itself. While the coordinator is away,
// sessions keep their newest snapshot; when it is back they are resumed. No data row of a direct
// session ever passes here; thin clients' forward does.
//
// Thread: any; every call has a finite limit. Nothing here throws.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "schemas/base/deadline_class.hpp"
#include "schemas/base/error.hpp"
#include "schemas/base/ids.hpp"
#include "schemas/base/time.hpp"
#include "transport/client/source/layer_router.hpp"
#include "transport/communication.hpp"
#include "transport/snapshot/routing_snapshot.hpp"
#include "transport/snapshot/suspicion.hpp"
#include "transport/tls/certificate_files.hpp"

namespace moetier::client {

struct session_wish {
  std::string tenant = "default";
  incarnation_id incarnation{};  // of the source half, 64 random bits; a thin one has none
  std::uint32_t tokens_max = 0;  // 0 = the tier's limit
  std::uint32_t micro_batches = 1;
  std::uint32_t top_k = 0;                  // 0 = the model's
  std::uint8_t return_mode = 0;             // 0 partial, 1 exact
  bool thin = false;                        // the gateway serves it
  bool gate_on_tier = false;                // calls may come without logits and ids
  bool shared_experts = false;              // the tier computes and adds them
  bool flags_bad_rows = false;              // a bad row of logits is flagged, not an error
  std::uint64_t model_fingerprint = 0;      // 0 = any
  std::optional<deadline_class> urgency{};  // none: the tenant's highest
};

// What a session's owner says of its work; its renewals carry it to the coordinator. Written by the
// session's owner, read by the link's thread.
struct session_use {
  std::atomic<std::uint64_t> calls{0};
  std::atomic<std::uint64_t> token_layers{0};
  std::atomic<std::uint64_t> generation{0};
};

struct session_granted {
  session_id session;
  source_id source;
  std::uint32_t tokens_max = 0;
  std::uint32_t micro_batches = 1;
  std::uint32_t top_k = 0;
  duration_ns call_deadline = 0;
  duration_ns step_deadline = 0;  // 0 = none
  deadline_class urgency = deadline_class::decode;
  // Tokens of steps a second, 0 = no limit; each renewal writes it anew. Never null.
  std::shared_ptr<std::atomic<std::uint64_t>> tokens_per_second;
  transport::snapshot_ptr snapshot;  // never null
  std::shared_ptr<session_use> use;  // never null
};

enum class link_event : std::uint8_t {
  coordinator_lost,
  coordinator_back,
  snapshot,
  suspect,  // the set of suspected workers changed
  session_lost
};

struct thin_call {
  layer_id layer;
  std::uint32_t tokens = 0;
  dtype hidden_type = dtype::f32;
  std::span<const std::byte> hidden;  // [tokens, H], dense
  dtype logits_type = dtype::f32;
  std::span<const std::byte> logits;            // [tokens, columns] or empty
  std::span<const std::int32_t> ids;            // [tokens, k] or empty
  std::span<const float> weights;               // [tokens, k] or empty
  std::span<const std::int32_t> token_ids{};    // [tokens] or empty
  std::span<const std::int32_t> adapter_ids{};  // [tokens] or empty
  duration_ns deadline = 0;
};

struct thin_result {
  std::vector<float> output;      // [tokens, H]
  std::vector<std::int32_t> ids;  // [tokens, k], as routed
  std::vector<float> weights;
  std::vector<std::uint8_t> bad_rows;  // [tokens] if the session flags them
  generation_number generation;
  epoch_number epoch;
};

enum class admin_document : std::uint8_t { status, placement, resolution, adapters, experts };

class tier_link {
 public:
  virtual ~tier_link() = default;

  virtual expected<transport::snapshot_ptr> snapshot(
      duration_ns limit) = 0;  // newest, or NOT_READY
  virtual expected<session_granted> open_session(const session_wish& wish, duration_ns limit) = 0;
  virtual expected<void> attach(session_id session, const transport::source_shape& shape,
                                const transport::member_address& address, duration_ns limit) = 0;
  virtual expected<void> close_session(session_id session, duration_ns limit) = 0;
  virtual expected<thin_result> forward(session_id session, const thin_call& call) = 0;
  // Blocks until a snapshot newer than `seen` is here, or the session is lost or the limit is over
  // (null).
  virtual transport::snapshot_ptr wait_newer(session_id session,
                                             const transport::routing_snapshot& seen,
                                             duration_ns limit) = 0;
  virtual transport::snapshot_ptr newest() const = 0;  // never blocks; may be null before the first
  // Never block. (optional) Without them a stuck worker is known by the snapshot that masks it.
  virtual transport::suspicion_ptr suspicion() const { return nullptr; }
  virtual void report_late(session_id, worker_id, incarnation_id) {}
  virtual bool session_lost(session_id session) const = 0;
  // A layer's router, fetched piece by piece.
  virtual expected<layer_router_ptr> router(layer_id layer, duration_ns limit) = 0;
  // Administration: documents as JSON text, each with a `schema` field.
  virtual expected<std::string> document(admin_document which, duration_ns limit) = 0;

  // Every worker reads it from the same absolute path; both answer the list as document() does.
  virtual expected<std::string> load_adapter(const std::string& name, const std::string& path,
                                             duration_ns limit) = 0;
  virtual expected<std::string> drop_adapter(const std::string& name, duration_ns limit) = 0;

  // Of the coordinator and all workers: "configured", "debug", "info", "warn", "error" or "off".
  virtual expected<void> set_log_level(const std::string& level, duration_ns limit) = 0;

  // Called on the link's thread; must return at once.
  virtual void on_event(std::function<void(link_event, session_id)> sink) = 0;
};

// Whether the first connection waits for a coordinator that is about to come, or is given up where
// every address refuses it. One that was connected once is patient in any case.
enum class first_contact : std::uint8_t { impatient, patient };

// The files by which a client proves who it is, and the name that the coordinator's certificate
// must be of. The files are looked at again for every new connection: renewed ones are taken up
// then.
struct tls_wish {
  tls::file_names files{};
  std::string server_name{};  // empty = the address's host
};

struct link_options {
  first_contact first = first_contact::impatient;
  std::optional<tls_wish> tls{};  // absent = in the clear
};

// Connects to "host:port" or "unix:PATH" within the limit; reason::coordinator_unreached otherwise,
// certificate_unusable for files that cannot serve.
expected<std::unique_ptr<tier_link>> connect(std::string_view address, duration_ns limit,
                                             const link_options& options);
inline expected<std::unique_ptr<tier_link>> connect(
    std::string_view address, duration_ns limit, first_contact first = first_contact::impatient) {
  return connect(address, limit, link_options{.first = first});
}

}  // namespace moetier::client
