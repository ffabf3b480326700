#pragma once
// The implementation of source_session: it owns one half of the data plane, one ticket per
// micro-batch, the adopted snapshot and the step's state. It decides what tickets do not: which
// snapshot is in use, when a call is late, and when a failed call is tried again.
// Thread: owner.

#include <optional>
#include <vector>

#include "transport/client/source/opening.hpp"
#include "transport/client/source/repeat_counts.hpp"
#include "transport/client/source/step_credit.hpp"
#include "transport/client/source/ticket.hpp"

namespace moetier::client {

class session final : public source_session {
 public:
  session(const source_session_options& options, transport::snapshot_ptr snapshot,
          const opening& plan, std::vector<layer_router_ptr> routers,
          std::unique_ptr<transport::SourceHalf> half);
  ~session() override;

  const transport::member_address& address() const noexcept override { return half_->address(); }
  const transport::source_shape& shape() const noexcept override { return shape_; }

  expected<void> step_begin(bool replay) override;
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
  struct call_names {
    layer_id layer;
    std::uint16_t micro_batch = 0;
    std::uint16_t repeat_idx = 0;
    std::uint16_t repeat_count = 1;
  };
  // Of a ticket, beside the ticket: when it must end and what it took so far.
  struct clocked {
    ticket call;
    call_names names;
    time_ns submitted = 0;
    time_ns deadline = 0;
    time_ns sent = 0;     // when submit() ended
    time_ns stalled = 0;  // since when a chunk waits for a bank; 0 = none does
    std::uint32_t first_chunk = 0;
    worker_mask asked_of = 0;  // whom it could not be kept from, by snapshot_ and suspicion_
    bool steered = false;      // given up for a suspect's sake: to be tried again in any case
    call_times times;
  };
  void adopt(transport::snapshot_ptr next);
  void adopt_newest_revision();
  bool any_outstanding() const noexcept;
  void look_for_suspects();
  worker_mask avoided(time_ns now) const noexcept;
  worker_mask kept_from(const clocked& c, worker_mask all) const noexcept;
  void steer(time_ns now);
  void note_late(worker_id worker, time_ns now);
  expected<void> choose(clocked& c);
  void progress();
  bool drops_a_worker(const transport::routing_snapshot& next) const noexcept;
  void await(time_ns deadline);
  expected<void> finish(clocked& c, const layer_result& result);
  bool can_replay(const clocked& c, const transport::routing_snapshot& next) const noexcept;
  bool may_replay(const clocked& c) const noexcept;
  void replay_others(const clocked& collected);
  bool replay(clocked& c, expected<void>& chosen);
  error error_of(const clocked& c, time_ns now) const;
  expected<void> take_credit();
  void charge(const layer_call& call) noexcept;
  error refusal_of(const clocked& c, time_ns now) const;
  void record_answer(const clocked& c) noexcept;
  void record_failure(const clocked& c);
  unexpected_error poison(error why);
  void note_stall(clocked& c, time_ns now) noexcept;

  source_session_options options_;
  transport::snapshot_ptr snapshot_;
  transport::source_shape shape_;
  call_bounds bounds_;
  std::vector<layer_router_ptr> routers_;  // by MoE layer index; empty where calls bring choices
  std::unique_ptr<transport::SourceHalf> half_;
  worker_table workers_;
  std::vector<clocked> tickets_;  // by micro-batch
  repeat_counts repeats_;
  step_credit credit_;
  std::vector<std::uint32_t> charged_;  // tokens of this step by micro-batch

  bool in_step_ = false;
  std::uint64_t step_ = 0;
  time_ns step_began_ = 0;
  std::uint8_t attempt_ = 0;      // raised by every replay of a call or of the step
  std::uint32_t next_chunk_ = 0;  // chunks are numbered through the step
  std::optional<error> poison_;
  transport::suspicion_ptr suspicion_;
  worker_mask suspects_ = 0;  // of suspicion_, as spans of snapshot_
  worker_mask late_ = 0;      // made a call of this session late, not long ago
  time_ns late_until_ = 0;
  time_ns looked_ = 0;  // when newest() was last asked while waiting
  call_times times_;
  call_end end_;
};

}  // namespace moetier::client
