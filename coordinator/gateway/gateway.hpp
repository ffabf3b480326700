#pragma once
// The gateway: the coordinator's own source half for thin clients. It owns one thin session per
// granted thin lease and the board on which the newest routing snapshot hangs for them. It never
// grants, renews or ends a lease, and knows neither RPC nor the coordinator's core: the RPC server
// asks the core, then this. Sessions never wait for each other.
//
// Thread: any; calls return at once. A `done` runs on a session's thread or inside the call that
// refuses it or ends its session; it hands over and never calls the gateway.

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "coordinator/gateway/thin_session.hpp"

namespace moetier::coordinator {

struct gateway_options {
  std::size_t sessions_max = k_sessions_max;
  std::uint64_t bytes_max = 256ULL << 20;  // of all calls that are here, rows and answers
  // Told when a call of a session ended in TIMEOUT; hands over at once. Empty = nobody asks.
  std::function<void(const late_worker&)> report_late{};
  client::router_source router{};  // for sessions whose gate is on the tier; empty = there are none
  // A call ended in TIMEOUT; on its session's thread.
  std::function<void(const transport::wait_record&, const transport::wait_ring&)> on_timeout{};
};

class gateway final {
 public:
  // Requires: the carrier outlives the gateway.
  gateway(transport::Communication& carrier, gateway_options options);
  ~gateway();  // ends every session and waits for the calls in service
  gateway(const gateway&) = delete;
  gateway& operator=(const gateway&) = delete;

  // Makes the source half of a granted session; `done` says how workers reach it. After a failure
  // the place is freed by end().
  void open(const thin_session_options& options, transport::snapshot_ptr snapshot,
            thin_session::opened done);
  void forward(session_id session, client::thin_rows rows, duration_ns limit,
               thin_session::forwarded done);
  // Whether one more call of this session would be taken now; reason::no_credit else.
  expected<void> room_for(session_id session) const;
  void set_rate(session_id session, std::uint64_t tokens_per_second);  // unknown: no effect
  void end(session_id session) noexcept;                               // unknown: no effect
  void on_snapshot(transport::snapshot_ptr snapshot);
  void on_suspicion(transport::suspicion_ptr suspicion);

  const transport::wait_ring& waits() const noexcept { return waits_; }
  std::uint64_t bytes_held() const noexcept { return budget_.held(); }
  std::size_t sessions() const;  // served, not counting those that are ending

  // What all its sessions did since the start, and their halves of the data plane.
  struct reading {
    client::source_reading source;
    transport::carrier_counters carrier;
    std::uint64_t bytes_held = 0;

    void add(const thin_session& session);
  };
  reading read() const;

 private:
  // The caller holds mutex_.
  void reap();  // joins what has finished
  expected<void> start(const thin_session_options& options, const thin_session::opened& done);

  transport::Communication& carrier_;
  const gateway_options options_;
  transport::wait_ring waits_;  // of all sessions
  row_budget budget_;
  client::snapshot_board board_;
  mutable std::mutex mutex_;
  std::map<session_id, std::unique_ptr<thin_session>> sessions_;
  std::vector<std::unique_ptr<thin_session>> ending_;
  reading ended_;  // of sessions that are gone
};

}  // namespace moetier::coordinator
