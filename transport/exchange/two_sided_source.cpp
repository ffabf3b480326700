#include "transport/exchange/two_sided_source.hpp"

#include "transport/exchange/shape.hpp"

namespace moetier::transport {

expected<std::unique_ptr<SourceHalf>> two_sided_source::make(const source_options& options,
                                                             bool checksum,
                                                             std::unique_ptr<Link> link) {
  if (auto ok = check_shape(options.shape); !ok) return unexpected_error(ok.error());
  if (options.workers_max > k_pairs_max)
    return fail(reason::limit_exceeded, "workers_max", options.workers_max, k_pairs_max);
  return std::unique_ptr<SourceHalf>(new two_sided_source(options, checksum, std::move(link)));
}

two_sided_source::two_sided_source(const source_options& options, bool checksum,
                                   std::unique_ptr<Link> link)
    : shape_(options.shape),
      table_(options.identity, options.shape, options.workers_max, checksum),
      link_(std::move(link)) {}

two_sided_source::~two_sided_source() {
  for (const auto& last : table_.farewell())
    link_->send(last.peer, last.head, last.payload_bytes, 0);
}

expected<void> two_sided_source::attach_worker(const worker_identity& worker,
                                               const member_address& address) {
  if (table_.is_attached(worker)) return {};
  if (!table_.has_room(worker.worker))
    return fail(reason::limit_exceeded, "the number of attached workers", table_.capacity() + 1,
                table_.capacity());
  auto memory = bank_memory::make({.banks = shape_.banks,
                                   .out_bytes = dispatch_bytes_max(shape_),
                                   .in_bytes = return_bytes_max(shape_),
                                   .carrier_bytes = link_->carrier_bytes()});
  if (!memory) return unexpected_error(memory.error());
  auto peer = link_->connect(address, *memory);
  if (!peer) return unexpected_error(peer.error());
  detach_worker(worker.worker);
  table_.attach(worker, *peer, std::move(*memory));
  return {};
}

void two_sided_source::detach_worker(worker_id worker) {
  if (const link_peer peer = table_.detach(worker); peer != 0) link_->disconnect(peer);
}

comm_status two_sided_source::open(worker_id worker, const exchange_key& key,
                                   exchange_ticket& ticket) {
  return table_.open(worker, key, ticket);
}

std::span<std::byte> two_sided_source::send_region(exchange_ticket ticket, std::uint32_t rows) {
  return table_.send_region(ticket, rows);
}

comm_status two_sided_source::dispatch(exchange_ticket ticket, std::uint32_t rows,
                                       std::uint32_t budget_us) {
  source_table::outgoing out;
  const comm_status status = table_.dispatch(ticket, rows, budget_us, out);
  if (status != comm_status::ok) return status;
  switch (link_->send(out.peer, out.head, out.payload_bytes, ticket)) {
    case link_send::done: table_.sent(ticket); break;
    case link_send::pending: break;
    case link_send::failed:
      table_.recall(ticket);
      lost(out.peer);
      return comm_status::peer_lost;
  }
  ++counters_.messages_sent;
  counters_.bytes_sent += k_wire_header_bytes + out.payload_bytes;
  return comm_status::ok;
}

std::size_t two_sided_source::poll(std::span<returned> out) {
  link_->progress(*this);
  tell_given_up();
  return table_.poll(out);
}

comm_status two_sided_source::expire(exchange_ticket ticket) {
  const comm_status done = table_.expire(ticket);
  if (done == comm_status::ok) tell_given_up();
  return done;
}

void two_sided_source::tell_given_up() {
  link_place word = 0;
  source_table::outgoing out;
  while (table_.next_give_up(word, out)) {
    ++counters_.messages_sent;
    counters_.bytes_sent += k_wire_header_bytes;
    switch (link_->send(out.peer, out.head, out.payload_bytes, word)) {
      case link_send::done: table_.sent(word); break;
      case link_send::pending: break;
      case link_send::failed:
        table_.sent(word);
        lost(out.peer);
        break;
    }
  }
}

void two_sided_source::release(exchange_ticket ticket) { table_.release(ticket); }

void two_sided_source::wait(std::chrono::nanoseconds spin, std::chrono::nanoseconds limit) {
  if (!has_work()) link_->wait(*this, spin, limit);
}

carrier_counters two_sided_source::counters() const noexcept {
  carrier_counters all = counters_;
  all.frames_dropped = table_.frames_dropped() + link_->frames_dropped();
  all.peers_lost = table_.peers_lost();
  all.peers_left = table_.peers_left();
  all.rows_corrupt = table_.rows_corrupt();
  all.requests_left = link_->requests_left();
  all.late_returns = table_.late_returns();
  return all;
}

landing two_sided_source::admit(std::span<const std::byte> head, std::size_t payload_bytes) {
  ++counters_.messages_received;
  counters_.bytes_received += head.size() + payload_bytes;
  return table_.admit(head, payload_bytes);
}

void two_sided_source::landed(link_place place, bool complete) { table_.landed(place, complete); }

void two_sided_source::sent(link_place place, time_ns) { table_.sent(place); }

void two_sided_source::lost(link_peer peer) { table_.lose(peer); }

void two_sided_source::gone(link_peer peer) { table_.lose(peer); }

void two_sided_source::left(link_peer peer) { table_.leave(peer); }

}  // namespace moetier::transport
