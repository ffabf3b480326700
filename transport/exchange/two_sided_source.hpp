#pragma once
// The source half over any link: it joins the table of exchanges to the link that moves their
// frames, and counts. Every carrier that sends messages both ways makes its sources from it.
// Thread: owner (serialised by the caller).

#include <memory>

#include "transport/communication.hpp"
#include "transport/exchange/link.hpp"
#include "transport/exchange/source_table.hpp"

namespace moetier::transport {

class two_sided_source final : public SourceHalf, private FrameSink {
 public:
  static expected<std::unique_ptr<SourceHalf>> make(const source_options& options, bool checksum,
                                                    std::unique_ptr<Link> link);
  ~two_sided_source() override;  // says farewell to its peers; waits for none

  const member_address& address() const noexcept override { return link_->address(); }
  expected<void> attach_worker(const worker_identity& worker,
                               const member_address& address) override;
  void detach_worker(worker_id worker) override;
  comm_status open(worker_id worker, const exchange_key& key, exchange_ticket& ticket) override;
  std::span<std::byte> send_region(exchange_ticket ticket, std::uint32_t rows) override;
  comm_status dispatch(exchange_ticket ticket, std::uint32_t rows,
                       std::uint32_t budget_us) override;
  std::size_t poll(std::span<returned> out) override;
  comm_status expire(exchange_ticket ticket) override;
  void release(exchange_ticket ticket) override;
  void wait(std::chrono::nanoseconds spin, std::chrono::nanoseconds limit) override;
  carrier_counters counters() const noexcept override;

 private:
  two_sided_source(const source_options& options, bool checksum, std::unique_ptr<Link> link);

  landing admit(std::span<const std::byte> head, std::size_t payload_bytes) override;
  void landed(link_place place, bool complete) override;
  void sent(link_place place, time_ns at) override;
  void lost(link_peer peer) override;
  void gone(link_peer peer) override;
  void left(link_peer peer) override;
  void tell_given_up();
  bool has_work() const override { return table_.has_ended(); }

  source_shape shape_;
  source_table table_;
  carrier_counters counters_;
  std::unique_ptr<Link> link_;
};

}  // namespace moetier::transport
