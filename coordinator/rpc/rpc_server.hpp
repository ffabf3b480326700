#pragma once
// The coordinator's RPC server: one thread with the KJ event loop that serves schemas/tier.capnp.
// It turns requests into events of the core (control_port) and the core's answers, snapshots and
// ended sessions (control_sink) into replies; thin sessions' rows go to the gateway. It decides
// nothing about sessions itself. A hostile or broken client costs its own connection, no more.
//
// Thread: any for the public calls; the control_sink part hands over to the server's thread.

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "coordinator/control_port.hpp"
#include "coordinator/gateway/gateway.hpp"
#include "transport/tls/credential.hpp"
#include "transport/tls/tls_session.hpp"
#include "coordinator/rpc/rpc_meter.hpp"

namespace moetier::client {
class rpc_loop;
}

namespace moetier::coordinator {

// What happened at the border, for whoever keeps the log; never sent anywhere.
struct rpc_notice {
  enum class kind : std::uint8_t { handshake_refused, call_refused };
  kind what = kind::call_refused;
  std::string peer;           // address of the connection, or the certificate's name
  const char* call = "";      // the method
  std::uint64_t request = 0;  // the client's number for it
  error why;                  // whole, also where the client reads less of it
  const char* handshake = "";
};

struct rpc_options {
  tls::credential_ptr credential{};                 // null = in the clear
  bool insecure = false;                            // in the clear, yet beyond loopback
  std::vector<std::string> administrators{};        // common names that may change the tier
  std::string admin_socket{};                       // path of the Unix socket; empty = none
  std::function<void(const rpc_notice&)> notice{};  // Thread: the server's; returns at once
};

struct rpc_counters {
  std::uint64_t connections_total = 0;
  std::uint64_t connections_open = 0;
  std::uint64_t connections_refused = 0;  // no room
  std::uint64_t connections_yielded = 0;  // made room for a newer one
  std::uint64_t connections_late = 0;     // no handshake or first call in time
  std::uint64_t connections_silent = 0;   // no word for too long
  std::array<std::uint64_t, tls::k_refusals> handshakes_refused{};  // by tls::refusal
  std::uint64_t frames_malformed = 0;                               // each ended its connection
  std::uint64_t connections_overrun = 0;  // too many unfinished calls or queued bytes
  std::uint64_t calls_total = 0;
  std::uint64_t calls_refused = 0;     // answered with a status other than OK
  std::uint64_t calls_denied = 0;      // of those, DENIED
  std::uint64_t calls_overloaded = 0;  // thin sessions' calls that found no room
};

class rpc_server final : public control_sink {
 public:
  // `thin`: null = thin sessions are refused. Requires: both outlive the server; the core's owner
  // may call the sink from construction to destruction.
  rpc_server(control_port& port, gateway* thin, rpc_options options);
  ~rpc_server() override;
  rpc_server(const rpc_server&) = delete;
  rpc_server& operator=(const rpc_server&) = delete;

  // "127.0.0.1:7400"; port 0 = a free one. Returns the bound port. reason::address_in_use;
  // config_invalid for an address that is not loopback, without certificates or `insecure`.
  expected<std::uint16_t> start(std::string_view listen);
  // Refuses new sessions and forwards (reason::shutting_down) and waits until those in service have
  // ended; false if the limit was over first. Followed by stop().
  bool drain(duration_ns limit);
  // For the connections to come; those that are there live on. Requires: there was a credential.
  void renew(tls::credential_ptr credential);
  // Ends every connection and the thread. Idempotent.
  void stop();

  rpc_counters counters() const noexcept;
  rpc_reading reading() const { return counters_.meter.read(); }

  void on_answer(const answer_session& answer) override;
  void on_answer(const answer_done& answer) override;
  void on_snapshot(const transport::snapshot_ptr& snapshot) override;
  void on_suspicion(const transport::suspicion_ptr& suspicion) override;
  void on_session_ended(const session_ended& ended) override;

  // Written by the server's thread, read by anyone.
  struct live_counters {
    std::atomic<std::uint64_t> connections_total{0};
    std::atomic<std::uint64_t> connections_open{0};
    std::atomic<std::uint64_t> connections_refused{0};
    std::atomic<std::uint64_t> connections_yielded{0};
    std::atomic<std::uint64_t> connections_late{0};
    std::atomic<std::uint64_t> connections_silent{0};
    std::array<std::atomic<std::uint64_t>, tls::k_refusals> handshakes_refused{};
    std::atomic<std::uint64_t> frames_malformed{0};
    std::atomic<std::uint64_t> connections_overrun{0};
    std::atomic<std::uint64_t> calls_total{0};
    std::atomic<std::uint64_t> calls_refused{0};
    std::atomic<std::uint64_t> calls_denied{0};
    std::atomic<std::uint64_t> calls_overloaded{0};
    rpc_meter meter;
  };

 private:
  class running;  // what lives on the thread

  void hand_over(std::function<void(running&)> job);

  control_port& port_;
  gateway* const gateway_;
  const rpc_options options_;
  live_counters counters_;
  std::mutex mutex_;  // guards running_ against stop(), and stop() against itself
  running* running_ = nullptr;
  std::thread thread_;
};

}  // namespace moetier::coordinator
