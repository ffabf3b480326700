#include "transport/exchange/two_sided_worker.hpp"

#include "transport/exchange/shape.hpp"

namespace moetier::transport {

expected<std::unique_ptr<WorkerHalf>> two_sided_worker::make(const worker_options& options,
                                                             bool checksum,
                                                             std::unique_ptr<Link> link) {
  if (options.sources_max > k_pairs_max)
    return fail(reason::limit_exceeded, "sources_max", options.sources_max, k_pairs_max);
  return std::unique_ptr<WorkerHalf>(new two_sided_worker(options, checksum, std::move(link)));
}

two_sided_worker::two_sided_worker(const worker_options& options, bool checksum,
                                   std::unique_ptr<Link> link)
    : table_(options.identity, options.sources_max, checksum),
      row_memory_(options.row_memory),
      link_(std::move(link)) {}

two_sided_worker::~two_sided_worker() {
  for (const auto& last : table_.farewell())
    link_->send(last.peer, last.bank, last.payload_bytes, 0);
}

expected<void> two_sided_worker::attach_source(const source_identity& source,
                                               const source_shape& shape,
                                               const member_address& address) {
  if (table_.is_attached(source, shape)) return {};
  if (auto ok = check_shape(shape); !ok) return ok;
  if (!table_.has_room(source.source))
    return fail(reason::limit_exceeded, "the number of attached sources", table_.capacity() + 1,
                table_.capacity());
  auto memory = bank_memory::make({.banks = shape.banks,
                                   .out_bytes = return_bytes_max(shape),
                                   .in_bytes = dispatch_bytes_max(shape)},
                                  row_memory_);
  if (!memory) return unexpected_error(memory.error());
  auto peer = link_->connect(address, *memory);
  if (!peer) return unexpected_error(peer.error());
  detach_source(source.source);
  table_.attach(source, shape, *peer, std::move(*memory));
  return {};
}

void two_sided_worker::detach_source(source_id source) {
  if (const link_peer peer = table_.detach(source); peer != 0) link_->disconnect(peer);
}

std::size_t two_sided_worker::poll(std::span<arrival> out) {
  link_->progress(*this);
  arrival_ticket refused = 0;
  status why = status::ok;
  while (table_.take_refused(refused, why)) give_back(refused, 0, why, 0);
  std::size_t written = 0;
  if (!table_.has_ready()) return written;
  const time_ns now = monotonic_now();
  while (written < out.size() && table_.take(out[written], now)) ++written;
  return written;
}

std::size_t two_sided_worker::poll_given_up(std::span<arrival_ticket> out) {
  std::size_t written = 0;
  while (written < out.size() && table_.take_given_up(out[written])) ++written;
  return written;
}

std::span<std::byte> two_sided_worker::return_region(arrival_ticket ticket) {
  return table_.return_region(ticket);
}

comm_status two_sided_worker::give_back(arrival_ticket ticket, std::uint32_t rows, status result,
                                        std::uint64_t detail) {
  worker_table::outgoing out;
  const time_ns now = monotonic_now();
  const comm_status status = table_.give_back(ticket, rows, result, detail, now, out);
  if (status != comm_status::ok) return status;
  switch (link_->send(out.peer, out.bank, out.payload_bytes, ticket)) {
    case link_send::done: table_.sent(ticket, now); break;
    case link_send::pending: break;
    case link_send::failed:
      table_.sent(ticket, now);
      lost(out.peer);
      return comm_status::peer_lost;
  }
  ++counters_.messages_sent;
  counters_.bytes_sent += k_wire_header_bytes + out.payload_bytes;
  return comm_status::ok;
}

void two_sided_worker::wait(std::chrono::nanoseconds spin, std::chrono::nanoseconds limit) {
  if (!has_work()) link_->wait(*this, spin, limit);
}

carrier_counters two_sided_worker::counters() const noexcept {
  carrier_counters all = counters_;
  all.frames_dropped = table_.frames_dropped() + link_->frames_dropped();
  all.peers_lost = table_.peers_lost();
  all.peers_left = table_.peers_left();
  all.rows_corrupt = table_.rows_corrupt();
  all.requests_left = link_->requests_left();
  all.stall_ns = table_.stall_ns();
  return all;
}

landing two_sided_worker::admit(std::span<const std::byte> head, std::size_t payload_bytes) {
  ++counters_.messages_received;
  counters_.bytes_received += head.size() + payload_bytes;
  return table_.admit(head, payload_bytes, monotonic_now());
}

void two_sided_worker::landed(link_place place, bool complete) {
  table_.landed(place, complete, monotonic_now());
}

void two_sided_worker::sent(link_place place) { table_.sent(place, monotonic_now()); }

void two_sided_worker::lost(link_peer peer) { table_.lose(peer); }

}  // namespace moetier::transport
