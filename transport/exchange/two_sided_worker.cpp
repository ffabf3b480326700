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
    : table_(options.identity, options.sources_max, checksum, options.row_memory,
             link->carrier_bytes()),
      link_(std::move(link)) {}

two_sided_worker::~two_sided_worker() {
  for (const auto& last : table_.farewell())
    link_->send(last.peer, last.head, last.payload_bytes, 0);
}

expected<void> two_sided_worker::attach_source(const source_identity& source,
                                               const source_shape& shape,
                                               const member_address& address) {
  if (table_.is_attached(source, shape)) return {};
  if (auto ok = check_shape(shape); !ok) return ok;
  if (!table_.has_room(source.source))
    return fail(reason::limit_exceeded, "the number of attached sources", table_.capacity() + 1,
                table_.capacity());
  auto memory = table_.make_memory(shape);
  if (!memory) return unexpected_error(memory.error());
  auto peer = link_->connect(address, *memory);
  if (!peer) return unexpected_error(peer.error());
  detach_source(source.source);
  table_.attach(source, shape, *peer, std::move(*memory), address);
  return {};
}

void two_sided_worker::detach_source(source_id source) {
  if (const link_peer peer = table_.detach(source); peer != 0) link_->disconnect(peer);
}

std::size_t two_sided_worker::poll(std::span<arrival> out) {
  link_->progress(*this);
  reach_again();
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

std::size_t two_sided_worker::poll_unreached(std::span<source_id> out) {
  std::size_t written = 0;
  while (written < out.size() && table_.take_unreached(out[written])) ++written;
  return written;
}

// Not where its frame is judged: that may be inside the library's progress.
void two_sided_worker::reach_again() {
  if (!table_.has_comebacks()) return;
  for (worker_table::comeback c; table_.next_comeback(c);) {
    const auto peer = link_->connect(*c.address, c.memory);
    if (!peer) {
      table_.unreached(c.source);
      continue;
    }
    link_->disconnect(c.lost);
    table_.reached(c.source, *peer);
  }
  worker_table::outgoing out;
  const time_ns now = monotonic_now();
  for (arrival_ticket ticket = 0; table_.next_unheard(ticket, now, out);)
    static_cast<void>(send(ticket, out, now));
}

std::span<std::byte> two_sided_worker::return_region(arrival_ticket ticket) {
  return table_.return_region(ticket);
}

comm_status two_sided_worker::give_back(arrival_ticket ticket, std::uint32_t rows, status result,
                                        std::uint64_t detail) {
  table_.want_source_of(ticket);
  reach_again();
  worker_table::outgoing out;
  const time_ns now = monotonic_now();
  const comm_status status = table_.give_back(ticket, rows, result, detail, now, out);
  if (status != comm_status::ok) return status;
  return send(ticket, out, now);
}

comm_status two_sided_worker::send(arrival_ticket ticket, const worker_table::outgoing& out,
                                   time_ns now) {
  switch (link_->send(out.peer, out.head, out.payload_bytes, ticket)) {
    case link_send::done: table_.sent(ticket, now); break;
    case link_send::pending: break;
    case link_send::failed:
      lost(out.peer);  // first: the table then knows that the return was under way
      table_.sent(ticket, now);
      return comm_status::peer_lost;
  }
  ++counters_.messages_sent;
  counters_.bytes_sent += k_wire_header_bytes + out.payload_bytes;
  return comm_status::ok;
}

void two_sided_worker::wait(std::chrono::nanoseconds spin, std::chrono::nanoseconds limit) {
  if (has_work()) return;
  link_->wait(*this, spin, limit);
  reach_again();  // before what is held meanwhile is given back
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

// A peer on this host writes the time: never taken for more than it can be.
void two_sided_worker::sent(link_place place, time_ns at) {
  const time_ns now = monotonic_now();
  table_.sent(place, at == 0 || at > now ? now : at);
}

void two_sided_worker::lost(link_peer peer) { table_.lose(peer); }

void two_sided_worker::gone(link_peer peer) { table_.lose_for_good(peer, false); }

void two_sided_worker::left(link_peer peer) { table_.lose_for_good(peer, true); }

}  // namespace moetier::transport
