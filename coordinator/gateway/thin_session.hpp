#pragma once
// One thin session: a source session on a thread of its own, fed by a small bounded queue. Made,
// fed and ended by the gateway. A call that waits for a frozen worker stalls this thread only; with
// nothing to do it sleeps. Each job ends exactly once, through its `done`, on this thread or on the
// one that ends the session.
//
// Thread: any, but the source session inside, which this one's thread owns.

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "coordinator/gateway/row_budget.hpp"
#include "transport/client/link/rows_codec.hpp"
#include "transport/client/link/snapshot_board.hpp"
#include "transport/client/source/source_meter.hpp"
#include "transport/client/source/source_session.hpp"

namespace moetier::coordinator {

// How the workers reach a thin session's source half.
struct thin_place {
  transport::source_shape shape;
  transport::member_address address;
};

// Who had not answered when a call of this session ended in TIMEOUT.
struct late_worker {
  session_id session;
  incarnation_id incarnation;  // of the session's source half
  worker_id worker;
  incarnation_id worker_incarnation;
};

struct thin_session_options {
  session_id session;
  source_id source;
  incarnation_id incarnation;
  std::uint32_t tokens_max = 0;
  std::uint32_t top_k = 0;
  std::uint8_t return_mode = 0;  // 0 partial, 1 exact
  bool gate_on_tier = false;
  bool shared_experts = false;
  bool flags_bad_rows = false;
  duration_ns call_deadline = k_second;
  std::uint64_t tokens_per_second = 0;  // 0 = no limit
  std::size_t waiting_max = 2;          // calls behind the one that is served
};

// What a thin session shares with its gateway. Requires: the references outlive the session.
struct thin_session_hooks {
  const client::router_source& router;
  const std::function<void(const late_worker&)>& report_late;
  transport::wait_ring& waits;
  row_budget& budget;
  const std::function<void(const transport::wait_record&, const transport::wait_ring&)>& on_timeout;
};

class thin_session final {
 public:
  using opened = std::function<void(expected<thin_place>)>;
  using forwarded = std::function<void(expected<client::thin_result>)>;

  // Requires: carrier and board outlive this object; the board holds a snapshot. Throws
  // std::system_error when its thread cannot start: `done` is not called then.
  thin_session(transport::Communication& carrier, const client::snapshot_board& board,
               const thin_session_hooks& hooks, const thin_session_options& options, opened done);
  ~thin_session();  // end(), then waits for the call in service: until its deadline at most
  thin_session(const thin_session&) = delete;
  thin_session& operator=(const thin_session&) = delete;

  void forward(client::thin_rows rows, duration_ns limit, forwarded done);
  expected<void> room() const;  // whether forward() would be taken now; reason::no_credit
  void set_rate(std::uint64_t tokens_per_second) noexcept {
    tokens_per_second_.store(tokens_per_second, std::memory_order_relaxed);
  }
  // What waits ends in CANCELLED, what is served may still end well. Returns at once.
  void end() noexcept;
  bool finished() const;  // the thread has nothing left to do: destruction will not wait

  client::source_reading reading() const { return meter_.read(); }
  transport::carrier_counters carrier_counts() const;  // as of the last call's end

 private:
  struct job {
    client::thin_rows rows;
    row_budget::share share;  // of the gateway's bytes, for the rows and the answer
    duration_ns limit = 0;
    time_ns end = 0;
    forwarded done;
  };

  expected<void> room_locked() const;
  expected<void> admit(client::thin_rows& rows, duration_ns limit, forwarded& done);
  void run(transport::Communication& carrier, const client::snapshot_board& board,
           const thin_session_hooks& hooks, opened done);
  expected<std::unique_ptr<client::source_session>> open_source(transport::Communication& carrier,
                                                                const client::snapshot_board& board,
                                                                const thin_session_hooks& hooks);
  expected<client::thin_result> serve(client::source_session& source, const job& call) const;

  const thin_session_options options_;
  row_budget& budget_;
  std::atomic<std::uint64_t> tokens_per_second_{0};
  client::source_meter meter_;
  mutable std::mutex mutex_;
  transport::carrier_counters carrier_;
  std::condition_variable changed_;

  std::deque<job> waiting_;
  bool serving_ = false;
  bool ended_ = false;
  bool finished_ = false;
  std::thread thread_;
};

}  // namespace moetier::coordinator
