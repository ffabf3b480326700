#pragma once
// A session as the C interface shows it: a lease, a source session on the service's carrier, its
// tickets, status words, events and counts. It turns tensors and options into the source half's
// values; all data work is the source half's. Owned by the caller through its handle.
// Thread: owner (serialised by the caller); id(), hear(), next_event(): any.

#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "transport/client/abi/call_tensors.hpp"
#include "transport/client/abi/device_staging.hpp"
#include "transport/client/abi/event_queue.hpp"
#include "transport/client/abi/moetier.h"
#include "transport/client/abi/service.hpp"
#include "transport/client/abi/tensor_view.hpp"
#include "transport/client/source/source_session.hpp"

namespace moetier::abi {

class session final {
 public:
  static expected<std::unique_ptr<session>> open(service& owner,
                                                 const moetier_session_options& options);
  ~session();

  session_id id() const noexcept { return granted_.session; }  // never changes
  expected<void> check() const { return owner_.check(); }
  expected<void> close();

  expected<void> step_begin(const moetier_step_options& options);
  expected<void> step_end(moetier_step_report& report);
  expected<moetier_ticket> submit(const moetier_call& call, void* stream);
  expected<void> collect(moetier_ticket ticket, const moetier_result& result, void* stream);
  expected<void> forward(const moetier_call& call, const moetier_result& result, void* stream);
  expected<void> known_ticket(moetier_ticket ticket) const;
  expected<void> ack_generation(std::uint64_t generation) const;

  moetier_stats_snapshot stats() const;
  std::span<const moetier_status_word> words() const noexcept { return words_; }
  event_queue& events() noexcept { return events_; }
  void hear(client::link_event event) noexcept;  // link's thread

 private:
  // What is known of a micro-batch's ticket from submit to collect.
  struct place {
    moetier_ticket ticket = 0;  // of its newest call
    bool outstanding = false;
    std::uint32_t tokens = 0;
    layer_id layer;
    std::uint16_t repeat_idx = 0;
    tensor_view hidden;   // where it lay, for the overlap rule
    shared_place memory;  // where its result must lie
  };
  struct counts {
    std::uint64_t calls = 0;
    std::uint64_t tokens = 0;
    std::uint64_t failures = 0;
    std::uint64_t replays = 0;
  };

  session(service& owner, const moetier_session_options& options, client::session_granted granted);
  expected<duration_ns> limit_of(std::uint64_t wish) const;
  expected<void> check_lease() const;
  expected<void> collect_into_nowhere(std::uint16_t micro_batch);
  expected<void> look_at_lease();  // asks the link
  void write_word(std::uint16_t micro_batch, status code);

  service& owner_;
  moetier_session_options options_;
  const client::session_granted granted_;
  bool holds_lease_ = true;  // and nobody has told the coordinator yet that it is over
  std::unique_ptr<client::source_session> source_;
  event_queue events_;
  std::uint64_t generation_told_ = 0;  // link's thread
  std::atomic<bool> lost_{false};

  std::uint32_t hidden_size_ = 0;
  std::unique_ptr<call_tensors> tensors_;
  std::unique_ptr<device_staging> staging_;
  std::vector<place> places_;               // by micro-batch
  std::vector<moetier_status_word> words_;  // by micro-batch
  moetier_ticket last_ticket_ = 0;
  duration_ns step_limit_ = 0;
  time_ns step_until_ = 0;  // 0 = no deadline
  std::optional<status> step_failure_;
  std::optional<error> device_failure_;  // the step's first one; the source half does not know it
  std::uint32_t attempts_ = 0;
  counts step_;
  counts all_;
  std::uint64_t steps_ = 0;
};

}  // namespace moetier::abi
