#pragma once
// The exchanges of one source half: for each attached worker its banks, stamps and credits. Pure
// protocol: it writes headers, judges returns and reports ended exchanges, and knows no library,
// clock or thread. Owned by the source half.
//
//   state  event            next  what happens
//   FREE   open             OPEN  takes the bank and the next stamp that falls on it
//   OPEN   dispatch         SENT  header written, rows published
//   OPEN   release          FREE
//   SENT   return is in     DONE  reported, once the send has let go of the bank too
//   SENT   expire           LATE  the caller has given up: nothing is reported, the worker is told
//   SENT   worker lost      DONE  reported as peer_lost
//   LATE   return is in     FREE  counted, dropped
//   LATE   worker lost      FREE
//   DONE   release          FREE
//   any    worker detached  FREE  SENT is reported as peer_lost
//
// Stamps of a pair rise and the bank is stamp mod banks, so both ends agree on it without a field;
// a busy bank is passed over. Stamps go on when a worker comes back: an old return meets no open
// stamp. Thread: owner.

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "transport/communication.hpp"
#include "transport/exchange/bounded_ring.hpp"
#include "transport/exchange/limits.hpp"
#include "transport/exchange/link.hpp"

namespace moetier::transport {

enum class exchange_state : std::uint8_t { free, open, sent, late, done };

class source_table final {
 public:
  struct outgoing {
    link_peer peer = 0;
    std::uint32_t head = 0;  // of a bank, or beside them (bank_layout)
    std::size_t payload_bytes = 0;
  };

  // Requires: check_shape(shape), workers_max <= k_pairs_max.
  source_table(const source_identity& self, const source_shape& shape, std::uint32_t workers_max,
               bool checksum);

  std::size_t capacity() const noexcept { return pairs_.size(); }

  // Members. attach() requires has_room() and that the worker is detached.
  bool is_attached(const worker_identity& worker) const noexcept;  // this incarnation, alive
  bool has_room(worker_id worker) const noexcept;
  void attach(const worker_identity& worker, link_peer peer, std::shared_ptr<bank_memory> memory);
  link_peer detach(worker_id worker);  // 0: was not attached
  void lose(link_peer peer);           // no effect unless it is attached and alive
  void leave(link_peer peer);          // the same of one that has said that it goes

  // Writes a last header for each worker that is attached, alive and was ever called: this half is
  // going away. A first word at the end would only make a carrier connect what is about to go.
  std::vector<outgoing> farewell();

  // Exchanges, in the order of their life.
  comm_status open(worker_id worker, const exchange_key& key, exchange_ticket& ticket);
  std::span<std::byte> send_region(exchange_ticket ticket, std::uint32_t rows) noexcept;
  comm_status dispatch(exchange_ticket ticket, std::uint32_t rows, std::uint32_t budget_us,
                       outgoing& out);
  void recall(exchange_ticket ticket);  // SENT -> OPEN: the link could not send it
  void sent(link_place place);
  landing admit(std::span<const std::byte> head, std::size_t payload_bytes);
  void landed(link_place place, bool complete);
  std::size_t poll(std::span<returned> out);
  comm_status expire(exchange_ticket ticket);
  // An exchange that expired and whose worker is to be told: the word is written beside the bank,
  // whose dispatch may still be under way; sent(word) must follow. False: none can be told now.
  bool next_give_up(link_place& word, outgoing& out);
  void release(exchange_ticket ticket);

  bool has_ended() const noexcept { return !ended_.empty(); }
  std::uint64_t frames_dropped() const noexcept { return frames_dropped_; }
  std::uint64_t peers_lost() const noexcept { return peers_lost_; }
  std::uint64_t peers_left() const noexcept { return peers_left_; }
  std::uint64_t rows_corrupt() const noexcept { return rows_corrupt_; }
  std::uint64_t late_returns() const noexcept { return late_returns_; }

 private:
  struct exchange {
    exchange_state state = exchange_state::free;
    bool detached = false;  // ended by detach: what is asked of it later answers peer_lost
    bool sending = false;   // the link still reads the out region
    bool answered = false;  // a return was admitted or judged; a second one is dropped
    bool settled = false;   // that return is complete
    bool reported = false;  // poll() has handed it out
    bool tell = false;      // LATE: the worker is to be told
    exchange_ticket ticket = 0;
    std::uint32_t stamp = 0;
    std::uint32_t payload_check = 0;
    exchange_key key{};
    returned result{};
  };
  struct worker_pair {
    worker_identity worker;
    bool used = false;
    bool attached = false;
    bool lost = false;
    bool called = false;  // since it was attached
    link_peer peer = 0;
    std::uint32_t last_stamp = 0;
    std::shared_ptr<bank_memory> memory;
    std::array<exchange, k_banks_max> banks;
    std::array<exchange_ticket, k_banks_max> telling{};  // whose word is under way, 0: nobody's
  };

  worker_pair* find(worker_id worker) noexcept;
  const worker_pair* find(worker_id worker) const noexcept;
  exchange* find(exchange_ticket ticket) noexcept;
  worker_pair& pair_of(exchange_ticket ticket) noexcept;
  exchange_ticket next_ticket(const worker_pair& pair, std::uint32_t bank) noexcept;
  landing drop() noexcept;
  void lose(worker_pair& pair, std::uint64_t& count);
  void settle(exchange& x);
  void end(exchange& x, comm_status result);

  source_identity self_;
  source_shape shape_;
  bool checksum_;
  std::uint16_t uses_ = 0;
  std::uint64_t frames_dropped_ = 0;
  std::uint64_t peers_lost_ = 0;
  std::uint64_t peers_left_ = 0;
  std::uint64_t rows_corrupt_ = 0;
  std::uint64_t late_returns_ = 0;
  std::uint32_t to_tell_ = 0;  // at most so many exchanges have `tell`
  std::vector<worker_pair> pairs_;
  bounded_ring<returned> ended_;
};

}  // namespace moetier::transport
