#pragma once
// The worker half over any link: it joins the table of arrivals to the link that moves their
// frames, answers what the table refuses, and counts. Every carrier that sends messages both ways
// makes its workers from it. Thread: engine (owner), but wake(): any.

#include <memory>

#include "transport/communication.hpp"
#include "transport/exchange/link.hpp"
#include "transport/exchange/worker_table.hpp"

namespace moetier::transport {

class two_sided_worker final : public WorkerHalf, private FrameSink {
 public:
  static expected<std::unique_ptr<WorkerHalf>> make(const worker_options& options, bool checksum,
                                                    std::unique_ptr<Link> link);
  ~two_sided_worker() override;  // says farewell to its peers; waits for none

  const member_address& address() const noexcept override { return link_->address(); }
  expected<void> attach_source(const source_identity& source, const source_shape& shape,
                               const member_address& address) override;
  void detach_source(source_id source) override;
  std::size_t poll(std::span<arrival> out) override;
  std::size_t poll_given_up(std::span<arrival_ticket> out) override;
  std::size_t poll_unreached(std::span<source_id> out) override;
  std::span<std::byte> return_region(arrival_ticket ticket) override;
  comm_status give_back(arrival_ticket ticket, std::uint32_t rows, status result,
                        std::uint64_t detail) override;
  void wait(std::chrono::nanoseconds spin, std::chrono::nanoseconds limit) override;
  void wake() noexcept override { link_->wake(); }
  carrier_counters counters() const noexcept override;

 private:
  two_sided_worker(const worker_options& options, bool checksum, std::unique_ptr<Link> link);

  landing admit(std::span<const std::byte> head, std::size_t payload_bytes) override;
  void landed(link_place place, bool complete) override;
  void sent(link_place place, time_ns at) override;
  void lost(link_peer peer) override;
  void gone(link_peer peer) override;
  void left(link_peer peer) override;
  bool has_work() const override { return table_.has_ready(); }
  void reach_again();
  comm_status send(arrival_ticket ticket, const worker_table::outgoing& out, time_ns now);

  worker_table table_;
  carrier_counters counters_;
  std::unique_ptr<Link> link_;
};

}  // namespace moetier::transport
