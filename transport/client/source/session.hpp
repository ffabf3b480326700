#pragma once
// The implementation of source_session: it owns one half of the data plane, one ticket per
// micro-batch, the adopted snapshot and the step's state. It decides what tickets do not: which
// snapshot is in use, when a call is late, and when a failed call is tried again.
// Thread: owner.

#include <optional>
#include <vector>

#include "transport/client/source/avoided_workers.hpp"
#include "transport/client/source/call_journal.hpp"
#include "transport/client/source/opening.hpp"
#include "transport/client/source/repeat_counts.hpp"
#include "transport/client/source/session_call.hpp"
#include "transport/client/source/step_credit.hpp"

namespace moetier::client {

class session final : public source_session {
 public:
  session(const source_session_options& options, transport::snapshot_ptr snapshot,
          const opening& plan, std::vector<layer_router_ptr> routers,
          std::unique_ptr<transport::SourceHalf> half);
  ~session() override;

  const transport::member_address& address() const noexcept override { return half_->address(); }
  const transport::source_shape& shape() const noexcept override { return shape_; }

  using source_session::step_begin;
  expected<void> step_begin(bool replay, duration_ns limit) override;
  expected<void> submit(const layer_call& call) override;
  expected<void> collect(std::uint16_t micro_batch, const layer_result& result) override;
  expected<void> step_end() override;
  void cancel() override;

  const transport::routing_snapshot& snapshot() const noexcept override { return *snapshot_; }
  std::uint64_t step() const noexcept override { return step_; }
  const call_times& last_times() const noexcept override { return times_; }
  const call_end& last_end() const noexcept override { return end_; }
  transport::carrier_counters carrier_counts() const noexcept override { return half_->counters(); }

 private:
  void adopt(transport::snapshot_ptr next);
  void adopt_newest_revision();
  bool any_outstanding() const noexcept;
  void look_for_suspects();
  worker_mask avoided_now() const noexcept;
  worker_mask kept_from(const session_call& c, worker_mask all) const noexcept;
  void steer(time_ns now);
  void note_late(worker_id worker, time_ns now);
  void avoid_lost(const call_failure& failure, incarnation_id incarnation, time_ns now);
  void send(session_call& c, time_ns now);
  expected<void> choose(session_call& c);
  void progress();
  bool drops_a_worker(const transport::routing_snapshot& next) const noexcept;
  void await(time_ns deadline);
  expected<void> finish(session_call& c, const layer_result& result);
  bool can_replay(const session_call& c, const transport::routing_snapshot& next) const noexcept;
  bool may_replay(const session_call& c) const noexcept;
  bool can_do_without(const session_call& c,
                      const transport::routing_snapshot& next) const noexcept;
  void replay_others(const session_call& collected);
  bool replay(session_call& c, expected<void>& chosen);
  expected<void> take_credit();
  void charge(const layer_call& call) noexcept;
  unexpected_error poison(error why);
  void note_stall(session_call& c, time_ns now) noexcept;

  source_session_options options_;
  transport::snapshot_ptr snapshot_;
  transport::source_shape shape_;
  call_bounds bounds_;
  std::vector<layer_router_ptr> routers_;  // by MoE layer index; empty where calls bring choices
  std::unique_ptr<transport::SourceHalf> half_;
  worker_table workers_;
  std::vector<session_call> tickets_;  // by micro-batch
  call_journal journal_;
  repeat_counts repeats_;
  step_credit credit_;
  std::vector<std::uint32_t> charged_;  // tokens of this step by micro-batch

  bool in_step_ = false;
  std::uint64_t step_ = 0;
  time_ns step_began_ = 0;
  std::uint8_t attempt_ = 0;      // raised by every replay of a call or of the step
  std::uint32_t next_chunk_ = 0;  // chunks are numbered through the step
  std::optional<error> poison_;
  avoided_workers avoided_;
  time_ns looked_ = 0;  // when newest() was last asked while waiting
  call_times times_;
  call_end end_;
};

}  // namespace moetier::client
