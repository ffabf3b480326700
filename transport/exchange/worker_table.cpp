#include "transport/exchange/worker_table.hpp"

#include <algorithm>
#include <utility>

#include "schemas/base/assert.hpp"
#include "schemas/base/checksum.hpp"
#include "transport/exchange/frame.hpp"
#include "transport/exchange/shape.hpp"

namespace moetier::transport {
namespace {

// A ticket: use counter in the high bits (never 0), place of pair and bank in the low ones.
constexpr std::uint32_t k_place_bits = 16;
static_assert(k_pairs_max * k_banks_max <= 1u << k_place_bits);

constexpr std::uint32_t place_in(arrival_ticket ticket) noexcept {
  return static_cast<std::uint32_t>(ticket & ((1u << k_place_bits) - 1));
}
constexpr std::uint32_t bank_in(arrival_ticket ticket) noexcept {
  return place_in(ticket) % k_banks_max;
}

// What a worker answers to a known source whose frame is whole but wrong.
constexpr status refusal_of(size_fault fault) noexcept {
  return fault == size_fault::payload_bytes ? status::corrupt : status::invalid;
}

}  // namespace

worker_table::worker_table(const worker_identity& self, std::uint32_t sources_max, bool checksum,
                           std::shared_ptr<RowMemoryWatch> watch, std::size_t carrier_bytes)
    : self_(self),
      checksum_(checksum),
      carrier_bytes_(carrier_bytes),
      pairs_(sources_max),
      watch_(std::move(watch)) {
  MOETIER_ASSERT(sources_max <= k_pairs_max);
  ready_.reserve(std::size_t{sources_max} * k_banks_max);
  refused_.reserve(std::size_t{sources_max} * k_banks_max);
  given_up_.reserve(std::size_t{sources_max} * k_banks_max);
  unreached_.reserve(sources_max);
}

expected<std::shared_ptr<bank_memory>> worker_table::make_memory(const source_shape& shape) const {
  return bank_memory::make({.banks = shape.banks,
                            .out_bytes = return_bytes_max(shape),
                            .in_bytes = dispatch_bytes_max(shape),
                            .carrier_bytes = carrier_bytes_},
                           watch_);
}

bool worker_table::is_attached(const source_identity& source,
                               const source_shape& shape) const noexcept {
  const source_pair* pair = find(source.source);
  return pair != nullptr && !pair->lost && pair->source.session == source.session &&
         pair->source.incarnation == source.incarnation && pair->shape == shape;
}

bool worker_table::has_room(source_id source) const noexcept {
  return find(source) != nullptr ||
         std::any_of(pairs_.begin(), pairs_.end(), [](const auto& p) { return !p.attached; });
}

void worker_table::attach(const source_identity& source, const source_shape& shape, link_peer peer,
                          std::shared_ptr<bank_memory> memory, const member_address& address) {
  MOETIER_ASSERT(find(source.source) == nullptr);
  MOETIER_ASSERT(shape.banks >= k_banks_min && shape.banks <= k_banks_max);
  const auto place =
      std::find_if(pairs_.begin(), pairs_.end(), [](const auto& p) { return !p.attached; });
  MOETIER_ASSERT(place != pairs_.end());
  *place = source_pair{.source = source,
                       .shape = shape,
                       .attached = true,
                       .lost = false,
                       .over = false,
                       .back = false,
                       .spoke = false,
                       .called = false,
                       .peer = peer,
                       .address = address,
                       .called_as = self_.worker.value,
                       .memory = std::move(memory),
                       .banks = {}};
}

link_peer worker_table::detach(source_id source) {
  source_pair* pair = find(source);
  if (pair == nullptr) return 0;
  const auto is_its = [&](arrival_ticket ticket) { return &pair_of(ticket) == pair; };
  ready_.remove_if(is_its);
  refused_.remove_if(is_its);
  given_up_.remove_if(is_its);
  unreached_.remove_if([&](source_id told) { return told == source; });
  std::erase_if(displaced_, [&](const displaced_rows& d) { return is_its(d.ticket); });
  const link_peer peer = pair->peer;
  *pair = source_pair{};
  return peer;
}

void worker_table::lose(link_peer peer) {
  for (source_pair& pair : pairs_)
    if (pair.attached && pair.peer == peer) lose(pair, peers_lost_);
}

void worker_table::lose_for_good(link_peer peer, bool left) {
  for (source_pair& pair : pairs_) {
    if (!pair.attached || pair.peer != peer) continue;
    pair.over = true;
    lose(pair, left ? peers_left_ : peers_lost_);
  }
}

// Rows that came stay until the detach; giving them back will say peer_lost, unless their source is
// reached again.
void worker_table::lose(source_pair& pair, std::uint64_t& count) {
  if (std::exchange(pair.lost, true)) return;
  ++count;
  const bool owes = std::any_of(pair.banks.begin(), pair.banks.end(), [](const held_rows& x) {
    return x.state == arrival_state::free && x.returning;
  });
  if (owes) come_back(pair, false);
}

void worker_table::want_source_of(arrival_ticket ticket) {
  const held_rows* x = find(ticket);
  if (x == nullptr || x->state != arrival_state::held) return;
  source_pair& pair = pair_of(ticket);
  if (pair.lost) come_back(pair, false);
}

// Whether the pair, which is lost, is to be reached again.
bool worker_table::come_back(source_pair& pair, bool called) {
  if (pair.over || !(called || pair.spoke)) return false;
  pair.called = pair.called || called;
  return pair.back || renew(pair);
}

// A request of the lost connection that its library has not ended may still write: nothing new
// lands in that memory.
bool worker_table::renew(source_pair& pair) {
  auto memory = make_memory(pair.shape);
  if (!memory) return give_up_reaching(pair), false;
  for (held_rows& x : pair.banks) {
    if (x.stamp == 0) continue;
    if (x.former == nullptr) x.former = pair.memory;
    if (x.state != arrival_state::free) continue;
    x.returning = false;
    x.unheard = true;
  }
  pair.memory = std::move(*memory);
  if (!std::exchange(pair.back, true)) ++comebacks_;
  return true;
}

bool worker_table::next_comeback(comeback& out) {
  if (comebacks_ == 0) return false;
  for (source_pair& pair : pairs_) {
    if (!pair.attached || !pair.back) continue;
    out = {.source = pair.source.source,
           .lost = pair.peer,
           .address = &pair.address,
           .memory = pair.memory};
    return true;
  }
  comebacks_ = 0;
  return false;
}

void worker_table::reached(source_id source, link_peer peer) {
  source_pair* pair = find(source);
  MOETIER_ASSERT(pair != nullptr && pair->back);
  pair->lost = pair->back = pair->spoke = pair->called = false;
  pair->peer = peer;
  for (const held_rows& x : pair->banks) unheard_ += x.unheard ? 1 : 0;
}

void worker_table::unreached(source_id source) {
  source_pair* pair = find(source);
  MOETIER_ASSERT(pair != nullptr && pair->back);
  give_up_reaching(*pair);
}

void worker_table::give_up_reaching(source_pair& pair) {
  pair.back = pair.spoke = false;
  if (!pair.called || std::exchange(pair.over, true)) return;
  unreached_.push(pair.source.source);
}

bool worker_table::take_unreached(source_id& source) { return unreached_.pop(source); }

bool worker_table::next_unheard(arrival_ticket& ticket, time_ns now, outgoing& out) {
  if (unheard_ == 0) return false;
  for (source_pair& pair : pairs_) {
    if (!pair.attached || pair.lost) continue;
    for (held_rows& x : pair.banks) {
      if (!x.unheard) continue;
      // By a name of its own: the lost connection may still end the send of before.
      const auto bank = static_cast<std::uint32_t>(&x - pair.banks.data());
      x.ticket = ticket = next_ticket(pair, bank);
      write_return(pair, x, now, out);
      return true;
    }
  }
  unheard_ = 0;
  return false;
}

// Whether a newer dispatch may have the bank of rows that came by a lost connection. Those that the
// engine has stay there until it gives them back.
bool worker_table::displace(held_rows& x) {
  if (x.state == arrival_state::held) {
    if (displaced_.size() >= pairs_.size() * k_banks_max) return false;
    displaced_.push_back({.ticket = x.ticket, .memory = x.former});
  }
  const auto is_it = [&](arrival_ticket ticket) { return ticket == x.ticket; };
  ready_.remove_if(is_it);
  refused_.remove_if(is_it);
  x = held_rows{.stamp = x.stamp};
  return true;
}

bank_memory& worker_table::memory_of(const source_pair& pair, const held_rows& x) noexcept {
  return x.former == nullptr ? *pair.memory : *x.former;
}

std::vector<worker_table::outgoing> worker_table::farewell() {
  std::vector<outgoing> all;
  for (source_pair& pair : pairs_) {
    // Without a number, and never called by one, this half cannot say who is going.
    if (!pair.attached || pair.lost || pair.called_as == k_worker_unnumbered.value) continue;
    wire_header h;
    h.kind = wire_kind::abort;
    h.source = pair.source.source.value;
    h.worker = pair.called_as;
    h.session = pair.source.session.value;
    h.sender_incarnation = low_half(self_.incarnation);
    const std::uint32_t head = pair.memory->layout().farewell();
    write_head(h, *pair.memory, head);
    all.push_back({.peer = pair.peer, .head = head, .payload_bytes = 0});
  }
  return all;
}

landing worker_table::admit(std::span<const std::byte> head, std::size_t payload_bytes,
                            time_ns now) {
  wire_header h;
  if (decode_header(head, h) != wire_fault::none) return drop();
  source_pair* pair = find(source_id{h.source});
  // A source that was detached before its farewell came is none that did wrong.
  if (pair == nullptr && h.kind == wire_kind::abort) return {};
  if (pair == nullptr || h.sender_incarnation != low_half(pair->source.incarnation)) return drop();
  if (h.session != pair->source.session.value || !is_for_us(h.worker)) return drop();
  if (h.kind == wire_kind::abort) {
    if (h.stamp == 0) {
      pair->over = true;
      lose(*pair, peers_left_);
    } else {
      give_up(*pair, h.stamp);
    }
    return {};
  }
  if (h.kind != wire_kind::dispatch) return drop();
  pair->called_as = h.worker;
  const std::uint32_t bank = h.stamp % pair->shape.banks;
  held_rows& x = pair->banks[bank];
  const bool is_new = h.stamp != 0 && (x.stamp == 0 || is_newer(h.stamp, x.stamp));
  if (!is_new) return drop();
  // A source that has let go of what is in this bank has lost the connection; it is seen here soon.
  const bool in_use = x.state != arrival_state::free;
  if (in_use && x.former == nullptr) lose(*pair, peers_lost_);
  if (pair->lost && !come_back(*pair, true)) return drop();
  if (in_use && x.former == nullptr && !renew(*pair)) return drop();
  if (in_use && !displace(x)) return drop();
  pair->spoke = true;

  x.state = arrival_state::landing;
  x.refusal = status::ok;
  x.given_up = false;
  x.unheard = false;
  x.former.reset();
  x.ticket = next_ticket(*pair, bank);
  x.stamp = h.stamp;
  x.payload_check = h.payload_check;
  x.worker = h.worker;
  x.rows = h.rows;
  x.budget_us = h.budget_us;
  x.admitted_at = now;
  x.key = key_of(h);
  const size_fault fault =
      check_sizes(h, pair->shape.rows_max, row_bytes_of(pair->shape), payload_bytes);
  if (fault != size_fault::none) {
    x.refusal = refusal_of(fault);
    ++rows_corrupt_;
    arrive(x);
    return {};
  }
  return {.admitted = true,
          .place = x.ticket,
          .region = pair->memory->in(bank).first(payload_bytes),
          .memory = &pair->memory};
}

void worker_table::landed(link_place place, bool complete, time_ns now) {
  held_rows* x = find(place);
  if (x == nullptr || x->state != arrival_state::landing) return;
  const source_pair& pair = pair_of(place);
  const auto payload =
      memory_of(pair, *x).in(bank_in(place)).first(std::size_t{x->rows} * row_bytes_of(pair.shape));
  const bool sound = complete && (x->payload_check == 0 || x->payload_check == crc32c(payload));
  if (!sound) x->refusal = status::corrupt, ++rows_corrupt_;
  x->landed_at = now;
  arrive(*x);
}

void worker_table::arrive(held_rows& x) {
  x.state = arrival_state::arrived;
  if (!x.returning) report(x);
}

void worker_table::report(const held_rows& x) {
  (x.refusal == status::ok ? ready_ : refused_).push(x.ticket);
}

// Of an exchange that was answered meanwhile there is nothing to say; unless the answer may have
// gone with the connection: then its bank there is in use for ever.
void worker_table::give_up(source_pair& pair, std::uint32_t stamp) {
  held_rows& x = pair.banks[stamp % pair.shape.banks];
  if (x.stamp == stamp && x.state == arrival_state::free && pair.lost) {
    come_back(pair, true);
    return;
  }
  const bool here = x.state != arrival_state::free;
  if (x.stamp != stamp || !here || x.given_up || x.refusal != status::ok) return;
  x.given_up = true;
  // Those that were given back before anybody asked make room: one word a bank is left.
  given_up_.remove_if([&](arrival_ticket ticket) {
    const held_rows* told = find(ticket);
    return told == nullptr || told->state == arrival_state::free;
  });
  given_up_.push(x.ticket);
}

// Whether the oldest one can be told: the engine has it, and has not given it back.
bool worker_table::take_given_up(arrival_ticket& ticket) {
  if (given_up_.empty()) return false;
  bool found = false;
  given_up_.remove_if([&](arrival_ticket told) {
    const held_rows* x = find(told);
    if (x == nullptr || x->state == arrival_state::free) return true;
    if (found || x->state != arrival_state::held) return false;
    ticket = told;
    return found = true;
  });
  return found;
}

bool worker_table::take_refused(arrival_ticket& ticket, status& why) {
  if (!refused_.pop(ticket)) return false;
  held_rows* x = find(ticket);
  MOETIER_ASSERT(x != nullptr && x->state == arrival_state::arrived);
  x->state = arrival_state::held;
  why = x->refusal;
  return true;
}

bool worker_table::take(arrival& out, time_ns now) {
  arrival_ticket ticket = 0;
  if (!ready_.pop(ticket)) return false;
  held_rows* x = find(ticket);
  MOETIER_ASSERT(x != nullptr && x->state == arrival_state::arrived);
  x->state = arrival_state::held;
  const source_pair& pair = pair_of(ticket);
  const std::size_t hidden_bytes = std::size_t{x->rows} * pair.shape.hidden_stride;
  const auto region = memory_of(pair, *x).in(bank_in(ticket));
  const duration_ns gone = now > x->admitted_at ? (now - x->admitted_at) / k_microsecond : 0;
  out = {.ticket = ticket,
         .source = pair.source.source,
         .key = x->key,
         .rows = x->rows,
         .budget_us =
             x->budget_us - static_cast<std::uint32_t>(std::min<duration_ns>(gone, x->budget_us)),
         .hidden = region.first(hidden_bytes),
         .records =
             region.subspan(hidden_bytes, std::size_t{x->rows} * record_stride(pair.shape.top_k)),
         .shape = &pair.shape,
         .admitted_at = x->admitted_at,
         .landed_at = x->landed_at};
  return true;
}

std::span<std::byte> worker_table::return_region(arrival_ticket ticket) noexcept {
  const held_rows* x = find(ticket);
  const std::uint32_t bank = bank_in(ticket);
  if (x == nullptr) {
    const auto gone = std::find_if(displaced_.begin(), displaced_.end(),
                                   [&](const displaced_rows& d) { return d.ticket == ticket; });
    if (gone == displaced_.end()) return {};
    return gone->memory->out(bank).first(return_bytes_max(pair_of(ticket).shape));
  }
  if (x->state != arrival_state::held) return {};
  const source_pair& pair = pair_of(ticket);
  return memory_of(pair, *x).out(bank).first(return_bytes_max(pair.shape));
}

comm_status worker_table::give_back(arrival_ticket ticket, std::uint32_t rows, status result,
                                    std::uint64_t detail, time_ns now, outgoing& out) {
  MOETIER_ASSERT(rows == 0 || result == status::ok);
  held_rows* x = find(ticket);
  if (x == nullptr) {
    const std::size_t gone =
        std::erase_if(displaced_, [&](const displaced_rows& d) { return d.ticket == ticket; });
    return gone == 0 ? comm_status::unknown_member : comm_status::peer_lost;
  }
  if (x->state != arrival_state::held) return comm_status::sequence;
  source_pair& pair = pair_of(ticket);
  if (rows > pair.shape.return_rows_max) return comm_status::capacity;
  x->state = arrival_state::free;
  x->returned = result;
  x->returned_rows = rows;
  x->detail = detail;
  if (pair.lost) {
    x->unheard = true;
    if (x->former == nullptr) x->former = pair.memory;
    return comm_status::peer_lost;
  }
  write_return(pair, *x, now, out);
  return comm_status::ok;
}

void worker_table::write_return(source_pair& pair, held_rows& x, time_ns now, outgoing& out) {
  out = {.peer = pair.peer,
         .head = bank_in(x.ticket),
         .payload_bytes = std::size_t{x.returned_rows} * pair.shape.return_stride};
  if (x.former != nullptr) {
    const auto computed = x.former->out(out.head).first(out.payload_bytes);
    std::copy(computed.begin(), computed.end(), pair.memory->out(out.head).begin());
    x.former.reset();
  }
  wire_header h = header_of(x.key);
  h.kind = wire_kind::give_back;
  h.flags = static_cast<std::uint8_t>(x.returned);
  if (x.returned != status::ok) h.generation = x.detail;
  h.source = pair.source.source.value;
  h.worker = x.worker;
  h.sender_incarnation = low_half(self_.incarnation);
  h.stamp = x.stamp;
  h.rows = x.returned_rows;
  h.row_bytes = pair.shape.return_stride;
  h.payload_bytes = out.payload_bytes;
  h.budget_us = static_cast<std::uint32_t>(std::min<duration_ns>(now - x.admitted_at, ~0u));
  if (checksum_) h.payload_check = crc32c(pair.memory->out(out.head).first(out.payload_bytes));
  write_head(h, *pair.memory, out.head);
  x.unheard = false;
  x.returning = true;
  x.given_back_at = now;
  x.returned_ticket = x.ticket;
}

void worker_table::sent(link_place place, time_ns now) {
  if (place_in(place) / k_banks_max >= pairs_.size()) return;
  held_rows& x = pair_of(place).banks[bank_in(place)];
  if (!x.returning || x.returned_ticket != place) return;
  x.returning = false;
  if (now > x.given_back_at) stall_ns_ += now - x.given_back_at;
  if (x.state == arrival_state::arrived) report(x);
}

bool worker_table::is_for_us(std::uint16_t worker) const noexcept {
  return self_.worker == k_worker_unnumbered || self_.worker.value == worker;
}

landing worker_table::drop() noexcept {
  ++frames_dropped_;
  return {};
}

worker_table::source_pair* worker_table::find(source_id source) noexcept {
  return const_cast<source_pair*>(std::as_const(*this).find(source));
}

const worker_table::source_pair* worker_table::find(source_id source) const noexcept {
  const auto pair = std::find_if(pairs_.begin(), pairs_.end(), [&](const auto& p) {
    return p.attached && p.source.source == source;
  });
  return pair == pairs_.end() ? nullptr : &*pair;
}

worker_table::source_pair& worker_table::pair_of(arrival_ticket ticket) noexcept {
  return pairs_[place_in(ticket) / k_banks_max];
}

// The bank of a ticket that was given out and has not been taken by a newer dispatch.
worker_table::held_rows* worker_table::find(arrival_ticket ticket) noexcept {
  if (ticket == 0 || place_in(ticket) / k_banks_max >= pairs_.size()) return nullptr;
  held_rows& x = pair_of(ticket).banks[bank_in(ticket)];
  return x.ticket == ticket ? &x : nullptr;
}

arrival_ticket worker_table::next_ticket(const source_pair& pair, std::uint32_t bank) noexcept {
  const auto index = static_cast<std::uint64_t>(&pair - pairs_.data());
  return (++uses_ << k_place_bits) | (index * k_banks_max + bank);
}

}  // namespace moetier::transport
