#include "transport/exchange/source_table.hpp"

#include <algorithm>
#include <utility>

#include "schemas/base/assert.hpp"
#include "schemas/base/checksum.hpp"
#include "transport/exchange/frame.hpp"
#include "transport/exchange/shape.hpp"

namespace moetier::transport {
namespace {

// A ticket: use counter in the high half (never 0), place of pair and bank in the low half.
constexpr std::uint32_t k_place_bits = 16;
static_assert(k_pairs_max * k_banks_max <= 1u << k_place_bits);

constexpr std::uint32_t place_in(exchange_ticket ticket) noexcept {
  return ticket & ((1u << k_place_bits) - 1);
}
constexpr std::uint32_t bank_in(exchange_ticket ticket) noexcept {
  return place_in(ticket) % k_banks_max;
}

// A place of the link is the ticket whose rows it sends, or that of the word that it is given up.
constexpr link_place k_word = link_place{1} << 32;

}  // namespace

source_table::source_table(const source_identity& self, const source_shape& shape,
                           std::uint32_t workers_max, bool checksum)
    : self_(self), shape_(shape), checksum_(checksum), pairs_(workers_max) {
  MOETIER_ASSERT(workers_max <= k_pairs_max);
  MOETIER_ASSERT(shape.banks >= k_banks_min && shape.banks <= k_banks_max);
}

bool source_table::is_attached(const worker_identity& worker) const noexcept {
  const worker_pair* pair = find(worker.worker);
  return pair != nullptr && !pair->lost && pair->worker.incarnation == worker.incarnation;
}

bool source_table::has_room(worker_id worker) const noexcept {
  return find(worker) != nullptr ||
         std::any_of(pairs_.begin(), pairs_.end(), [](const auto& p) { return !p.attached; });
}

void source_table::attach(const worker_identity& worker, link_peer peer,
                          std::shared_ptr<bank_memory> memory) {
  MOETIER_ASSERT(find(worker.worker) == nullptr);
  const auto pick = [&](auto wanted) { return std::find_if(pairs_.begin(), pairs_.end(), wanted); };
  // The place it had before, so that its stamps go on; else a fresh one; else one left by another.
  auto place = pick([&](const auto& p) { return p.used && p.worker.worker == worker.worker; });
  if (place == pairs_.end()) place = pick([](const auto& p) { return !p.used; });
  if (place == pairs_.end()) place = pick([](const auto& p) { return !p.attached; });
  MOETIER_ASSERT(place != pairs_.end());
  place->worker = worker;
  place->used = place->attached = true;
  place->lost = place->called = false;
  place->peer = peer;
  place->memory = std::move(memory);
  place->telling = {};
  for (exchange& x : place->banks) x = exchange{.ticket = x.ticket};
  // Each bank ends once per attachment, so this much can wait for a poll.
  ended_.reserve(ended_.size() + pairs_.size() * shape_.banks);
}

link_peer source_table::detach(worker_id worker) {
  worker_pair* pair = find(worker);
  if (pair == nullptr) return 0;
  for (exchange& x : pair->banks) {
    if (x.state == exchange_state::sent) end(x, comm_status::peer_lost);
    x.detached = x.state != exchange_state::free;
    x.state = exchange_state::free;
  }
  // What waits for a poll must not show a region that is about to go.
  for (std::size_t i = 0; i < ended_.size(); ++i) {
    returned& event = ended_.at(i);
    if (&pair_of(event.ticket) != pair || event.result != comm_status::ok) continue;
    event = {.ticket = event.ticket, .result = comm_status::peer_lost};
  }
  pair->attached = false;
  pair->memory.reset();
  return std::exchange(pair->peer, 0);
}

void source_table::lose(link_peer peer) {
  for (worker_pair& pair : pairs_)
    if (pair.attached && pair.peer == peer) lose(pair, peers_lost_);
}

void source_table::leave(link_peer peer) {
  for (worker_pair& pair : pairs_)
    if (pair.attached && pair.peer == peer) lose(pair, peers_left_);
}

void source_table::lose(worker_pair& pair, std::uint64_t& count) {
  if (std::exchange(pair.lost, true)) return;
  ++count;
  for (exchange& x : pair.banks) {
    if (x.state == exchange_state::sent) end(x, comm_status::peer_lost);
    if (x.state == exchange_state::late) x.state = exchange_state::free;
  }
}

std::vector<source_table::outgoing> source_table::farewell() {
  std::vector<outgoing> all;
  for (worker_pair& pair : pairs_) {
    if (!pair.attached || pair.lost || !pair.called) continue;
    wire_header h;
    h.kind = wire_kind::abort;
    h.source = self_.source.value;
    h.worker = pair.worker.worker.value;
    h.session = self_.session.value;
    h.sender_incarnation = low_half(self_.incarnation);
    const std::uint32_t head = pair.memory->layout().farewell();
    write_head(h, *pair.memory, head);
    all.push_back({.peer = pair.peer, .head = head, .payload_bytes = 0});
  }
  return all;
}

comm_status source_table::open(worker_id worker, const exchange_key& key, exchange_ticket& ticket) {
  worker_pair* pair = find(worker);
  if (pair == nullptr) return comm_status::unknown_member;
  if (pair->lost) return comm_status::peer_lost;
  // One round over the banks in the order of the stamps; 0 is no stamp.
  for (std::uint32_t ahead = 1; ahead <= shape_.banks + 1; ++ahead) {
    const std::uint32_t stamp = pair->last_stamp + ahead;
    if (stamp == 0) continue;
    const std::uint32_t bank = stamp % shape_.banks;
    if (pair->banks[bank].state != exchange_state::free) continue;
    ticket = next_ticket(*pair, bank);
    pair->last_stamp = stamp;
    pair->banks[bank] =
        exchange{.state = exchange_state::open, .ticket = ticket, .stamp = stamp, .key = key};
    return comm_status::ok;
  }
  return comm_status::no_credit;
}

std::span<std::byte> source_table::send_region(exchange_ticket ticket,
                                               std::uint32_t rows) noexcept {
  const exchange* x = find(ticket);
  if (x == nullptr || x->state != exchange_state::open || rows > shape_.rows_max) return {};
  return pair_of(ticket)
      .memory->out(bank_in(ticket))
      .first(std::size_t{rows} * row_bytes_of(shape_));
}

comm_status source_table::dispatch(exchange_ticket ticket, std::uint32_t rows,
                                   std::uint32_t budget_us, outgoing& out) {
  exchange* x = find(ticket);
  if (x == nullptr) return comm_status::sequence;
  if (x->detached) return comm_status::peer_lost;
  if (x->state != exchange_state::open) return comm_status::sequence;
  if (rows > shape_.rows_max) return comm_status::capacity;
  worker_pair& pair = pair_of(ticket);
  if (pair.lost) return comm_status::peer_lost;

  out = {.peer = pair.peer,
         .head = bank_in(ticket),
         .payload_bytes = std::size_t{rows} * row_bytes_of(shape_)};
  wire_header h = header_of(x->key);
  h.kind = wire_kind::dispatch;
  h.source = self_.source.value;
  h.worker = pair.worker.worker.value;
  h.session = self_.session.value;
  h.sender_incarnation = low_half(self_.incarnation);
  h.stamp = x->stamp;
  h.rows = rows;
  h.row_bytes = row_bytes_of(shape_);
  h.payload_bytes = out.payload_bytes;
  if (checksum_) h.payload_check = crc32c(pair.memory->out(out.head).first(out.payload_bytes));
  h.budget_us = budget_us;
  write_head(h, *pair.memory, out.head);

  pair.called = true;
  x->state = exchange_state::sent;
  x->sending = true;
  return comm_status::ok;
}

void source_table::recall(exchange_ticket ticket) {
  exchange* x = find(ticket);
  MOETIER_ASSERT(x != nullptr && x->state == exchange_state::sent);
  x->state = exchange_state::open;
  x->sending = false;
}

void source_table::sent(link_place place) {
  const auto ticket = static_cast<exchange_ticket>(place);
  if ((place & k_word) != 0) {
    exchange_ticket& telling = pair_of(ticket).telling[bank_in(ticket)];
    if (telling == ticket) telling = 0;
    return;
  }
  exchange* x = find(ticket);
  if (x == nullptr || x->detached) return;
  x->sending = false;
  settle(*x);
}

landing source_table::admit(std::span<const std::byte> head, std::size_t payload_bytes) {
  wire_header h;
  if (decode_header(head, h) != wire_fault::none) return drop();
  worker_pair* pair = find(worker_id{h.worker});
  if (pair == nullptr || h.sender_incarnation != low_half(pair->worker.incarnation)) return drop();
  if (h.source != self_.source.value || h.session != self_.session.value) return drop();
  if (h.kind == wire_kind::abort) return lose(*pair, peers_left_), landing{};
  if (h.kind != wire_kind::give_back) return drop();
  const std::uint32_t bank = h.stamp % shape_.banks;
  exchange& x = pair->banks[bank];
  const bool waits = x.state == exchange_state::sent || x.state == exchange_state::late;
  if (!waits || x.stamp != h.stamp || x.answered || !answers(h, x.key)) return drop();

  // From here the bank's word is in, whatever it says.
  x.answered = true;
  const bool sound = check_sizes(h, shape_.return_rows_max, shape_.return_stride, payload_bytes) ==
                         size_fault::none &&
                     (h.rows == 0 || status_in(h) == status::ok);
  if (!sound) ++rows_corrupt_;
  if (x.state == exchange_state::late || !sound) {
    x.result.result = sound ? comm_status::ok : comm_status::corrupt;
    x.settled = true;
    settle(x);
    return {};
  }
  x.payload_check = h.payload_check;
  const auto region = pair->memory->in(bank).first(payload_bytes);
  x.result = {.ticket = x.ticket,
              .result = comm_status::ok,
              .worker_status = status_in(h),
              .detail = status_in(h) == status::ok ? 0 : h.generation,
              .rows = h.rows,
              .payload = region,
              .held_ns = h.budget_us};
  return {.admitted = true, .place = x.ticket, .region = region, .memory = &pair->memory};
}

void source_table::landed(link_place place, bool complete) {
  exchange* x = find(static_cast<exchange_ticket>(place));
  if (x == nullptr || x->detached || !x->answered) return;
  const bool sound =
      complete && (x->payload_check == 0 || x->payload_check == crc32c(x->result.payload));
  if (!sound) x->result.result = comm_status::corrupt, ++rows_corrupt_;
  x->settled = true;
  settle(*x);
}

std::size_t source_table::poll(std::span<returned> out) {
  std::size_t written = 0;
  while (written < out.size() && ended_.pop(out[written])) {
    if (exchange* x = find(out[written].ticket)) x->reported = true;
    ++written;
  }
  return written;
}

comm_status source_table::expire(exchange_ticket ticket) {
  exchange* x = find(ticket);
  if (x == nullptr) return comm_status::sequence;
  if (x->detached) return comm_status::peer_lost;
  if (x->state != exchange_state::sent) return comm_status::sequence;
  x->state = exchange_state::late;
  x->tell = !x->answered;
  if (x->tell) ++to_tell_;
  return comm_status::ok;
}

bool source_table::next_give_up(link_place& word, outgoing& out) {
  if (to_tell_ == 0) return false;
  to_tell_ = 0;
  bool found = false;
  for (worker_pair& pair : pairs_) {
    if (!pair.attached || pair.lost) continue;
    for (exchange& x : pair.banks) {
      if (!x.tell) continue;
      x.tell = x.state == exchange_state::late && !x.answered;
      if (!x.tell) continue;
      exchange_ticket& telling = pair.telling[bank_in(x.ticket)];
      if (found || telling != 0) {
        ++to_tell_;
        continue;
      }
      found = true;
      telling = x.ticket;
      word = k_word | x.ticket;
      out = {.peer = pair.peer,
             .head = pair.memory->layout().give_up_of(bank_in(x.ticket)),
             .payload_bytes = 0};
      wire_header h = header_of(x.key);
      h.kind = wire_kind::abort;
      h.source = self_.source.value;
      h.worker = pair.worker.worker.value;
      h.session = self_.session.value;
      h.sender_incarnation = low_half(self_.incarnation);
      h.stamp = x.stamp;
      write_head(h, *pair.memory, out.head);
      x.tell = false;
    }
  }
  return found;
}

void source_table::release(exchange_ticket ticket) {
  exchange* x = find(ticket);
  if (x == nullptr) return;
  if (x->state != exchange_state::open && x->state != exchange_state::done) return;
  if (x->state == exchange_state::done && !x->reported)
    ended_.remove_if([&](const returned& event) { return event.ticket == ticket; });
  x->state = exchange_state::free;
}

// Once the return is complete and the send has let go, the bank has no user but the caller.
void source_table::settle(exchange& x) {
  if (!x.settled || x.sending) return;
  if (x.state == exchange_state::late) {
    ++late_returns_;
    x.state = exchange_state::free;
  } else if (x.state == exchange_state::sent) {
    end(x, x.result.result);
  }
}

void source_table::end(exchange& x, comm_status result) {
  if (result == comm_status::ok)
    ended_.push(x.result);
  else
    ended_.push({.ticket = x.ticket, .result = result});
  x.state = exchange_state::done;
}

landing source_table::drop() noexcept {
  ++frames_dropped_;
  return {};
}

source_table::worker_pair* source_table::find(worker_id worker) noexcept {
  return const_cast<worker_pair*>(std::as_const(*this).find(worker));
}

const source_table::worker_pair* source_table::find(worker_id worker) const noexcept {
  const auto pair = std::find_if(pairs_.begin(), pairs_.end(), [&](const auto& p) {
    return p.attached && p.worker.worker == worker;
  });
  return pair == pairs_.end() ? nullptr : &*pair;
}

source_table::worker_pair& source_table::pair_of(exchange_ticket ticket) noexcept {
  return pairs_[place_in(ticket) / k_banks_max];
}

// The exchange of a ticket that was given out and whose bank has not been opened again.
source_table::exchange* source_table::find(exchange_ticket ticket) noexcept {
  if (ticket == 0 || place_in(ticket) / k_banks_max >= pairs_.size()) return nullptr;
  exchange& x = pair_of(ticket).banks[bank_in(ticket)];
  return x.ticket == ticket ? &x : nullptr;
}

exchange_ticket source_table::next_ticket(const worker_pair& pair, std::uint32_t bank) noexcept {
  if (++uses_ == 0) uses_ = 1;
  const auto index = static_cast<std::uint32_t>(&pair - pairs_.data());
  return (std::uint32_t{uses_} << k_place_bits) | (index * k_banks_max + bank);
}

}  // namespace moetier::transport
