#pragma once
// The exchanges of one worker half: for each attached source its banks. Pure protocol: it judges
// dispatches, reports arrivals in the order they became complete, and writes the headers of
// returns; it knows no library, clock or thread. Owned by the worker half.
//
//   state    event                next     what happens
//   FREE     a sound header       LANDING  the payload may land in the bank
//   LANDING  payload complete     ARRIVED  reported by the next take()
//   LANDING  payload damaged      ARRIVED  reported by take_refused() instead
//   FREE     header of bad sizes  ARRIVED  the same
//   not FREE  a newer stamp       LANDING  the source has let go of it: its connection broke
//   ARRIVED  take                 HELD     the rows are the engine's
//   HELD     give_back            FREE     return header written
//   ARRIVED, HELD  its source gives it up  the same, reported by take_given_up() once HELD
//   any      source detached      FREE     its tickets are unknown from now on
//
// A bank is stamp mod banks and takes only newer stamps, so a doubled or replayed dispatch finds no
// place. An arrival whose bank is still sending its last return waits for sent(). Times come in as
// values; a return tells how long its rows were here. Thread: owner.
//
// A connection may break between two that live, and each sees it in its own time: the source may
// call over a new one before this end knows. So the half connects anew to a lost source that speaks
// again, and once to one whose rows are here or whose return was under way (a comeback). From then
// on the pair has fresh memory, as a library may still write into the lost connection's; rows that
// came by that one stay where they lie until they are given back. A newer stamp that falls on the
// bank of such rows takes it: their source has given them up. Last returns are said again, as they
// may not have been heard; a source that has heard them, or waits for them no more, drops them.

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "schemas/base/time.hpp"
#include "transport/communication.hpp"
#include "transport/exchange/bounded_ring.hpp"
#include "transport/exchange/limits.hpp"
#include "transport/exchange/link.hpp"

namespace moetier::transport {

enum class arrival_state : std::uint8_t { free, landing, arrived, held };

class worker_table final {
 public:
  struct outgoing {
    link_peer peer = 0;
    std::uint32_t head = 0;  // of a bank, or beside them (bank_layout)
    std::size_t payload_bytes = 0;
  };
  // A source that was lost and speaks again.
  struct comeback {
    source_id source;
    link_peer lost = 0;  // its connection of before
    const member_address* address = nullptr;
    std::shared_ptr<bank_memory> memory;
  };

  // Requires: sources_max <= k_pairs_max. `watch` (optional) is told of all memory made here, of
  // which the carrier keeps `carrier_bytes` for itself.
  worker_table(const worker_identity& self, std::uint32_t sources_max, bool checksum,
               std::shared_ptr<RowMemoryWatch> watch = {}, std::size_t carrier_bytes = 0);

  // The memory of a pair, for attach().
  expected<std::shared_ptr<bank_memory>> make_memory(const source_shape& shape) const;

  std::size_t capacity() const noexcept { return pairs_.size(); }

  // Members. attach() requires has_room(), check_shape(shape) and that the source is detached.
  // `address`: where it is reached again.
  bool is_attached(const source_identity& source, const source_shape& shape) const noexcept;
  bool has_room(source_id source) const noexcept;
  void attach(const source_identity& source, const source_shape& shape, link_peer peer,
              std::shared_ptr<bank_memory> memory, const member_address& address = {});
  link_peer detach(source_id source);             // 0: was not attached
  void lose(link_peer peer);                      // no effect unless it is attached and alive
  void lose_for_good(link_peer peer, bool left);  // `left`: in good order

  // Comebacks, each to be ended by reached() or unreached(). The first is asked before a ticket is
  // given back.
  void want_source_of(arrival_ticket ticket);
  bool has_comebacks() const noexcept { return comebacks_ > 0; }
  bool next_comeback(comeback& out);
  void reached(source_id source, link_peer peer);
  void unreached(source_id source);        // if it spoke, for good: its dispatches are dropped
  bool take_unreached(source_id& source);  // tells each once
  // A return that a source which was reached again may not have heard; sent() must follow.
  bool next_unheard(arrival_ticket& ticket, time_ns now, outgoing& out);

  // Writes a last header for each source that is attached and alive: this half is going away.
  std::vector<outgoing> farewell();

  // Exchanges, in the order of their life.
  // `now` of admit() and take(): what went by between the two is taken off the budget.
  landing admit(std::span<const std::byte> head, std::size_t payload_bytes, time_ns now);
  void landed(link_place place, bool complete, time_ns now);
  // The oldest complete arrival becomes HELD.
  bool take(arrival& out, time_ns now = 0);
  // So does the oldest one that must be given back with `why` and no rows.
  bool take_refused(arrival_ticket& ticket, status& why);
  // And the next HELD one that its source waits for no more.
  bool take_given_up(arrival_ticket& ticket);
  std::span<std::byte> return_region(arrival_ticket ticket) noexcept;
  comm_status give_back(arrival_ticket ticket, std::uint32_t rows, status result,
                        std::uint64_t detail, time_ns now, outgoing& out);
  void sent(link_place place, time_ns now);

  bool has_ready() const noexcept {
    return !ready_.empty() || !refused_.empty() || has_comebacks();
  }
  std::uint64_t frames_dropped() const noexcept { return frames_dropped_; }
  std::uint64_t peers_lost() const noexcept { return peers_lost_; }
  std::uint64_t peers_left() const noexcept { return peers_left_; }
  std::uint64_t rows_corrupt() const noexcept { return rows_corrupt_; }
  duration_ns stall_ns() const noexcept { return stall_ns_; }  // from give_back to sent

 private:
  struct held_rows {
    arrival_state state = arrival_state::free;
    bool returning = false;  // the link still reads the out region
    bool given_up = false;   // its source waits no more, and the engine is or will be told
    bool unheard = false;    // FREE: the return may have gone with a lost connection
    status returned = status::ok;
    std::uint32_t returned_rows = 0;
    std::uint64_t detail = 0;  // of the return
    status refusal = status::ok;
    arrival_ticket ticket = 0;
    arrival_ticket returned_ticket = 0;  // whose return the out region holds
    std::uint32_t stamp = 0;             // newest seen in this bank; 0 = none yet
    std::uint32_t payload_check = 0;
    std::uint16_t worker = 0;  // as the dispatch names us
    std::uint32_t rows = 0;
    std::uint32_t budget_us = 0;
    time_ns admitted_at = 0;
    time_ns landed_at = 0;
    time_ns given_back_at = 0;
    exchange_key key{};
    std::shared_ptr<bank_memory> former{};  // where its rows lie, if its connection was lost since
  };
  struct source_pair {
    source_identity source;
    source_shape shape;
    bool attached = false;
    bool lost = false;
    bool over = false;    // lost for good: it said that it goes, or cannot be reached
    bool back = false;    // lost, and to be reached
    bool spoke = false;   // since it was reached last: it is worth to be reached again
    bool called = false;  // it spoke while it was lost
    link_peer peer = 0;
    member_address address;
    std::uint16_t called_as = 0;  // our number in the source's words
    std::shared_ptr<bank_memory> memory;
    std::array<held_rows, k_banks_max> banks;
  };
  // Rows in the engine's hands whose bank a newer dispatch took.
  struct displaced_rows {
    arrival_ticket ticket = 0;
    std::shared_ptr<bank_memory> memory;
  };

  source_pair* find(source_id source) noexcept;
  const source_pair* find(source_id source) const noexcept;
  held_rows* find(arrival_ticket ticket) noexcept;
  source_pair& pair_of(arrival_ticket ticket) noexcept;
  arrival_ticket next_ticket(const source_pair& pair, std::uint32_t bank) noexcept;
  bool is_for_us(std::uint16_t worker) const noexcept;
  landing drop() noexcept;
  void lose(source_pair& pair, std::uint64_t& count);
  void arrive(held_rows& x);
  void report(const held_rows& x);
  void give_up(source_pair& pair, std::uint32_t stamp);
  static bank_memory& memory_of(const source_pair& pair, const held_rows& x) noexcept;
  bool come_back(source_pair& pair, bool called);
  bool renew(source_pair& pair);
  void give_up_reaching(source_pair& pair);
  bool displace(held_rows& x);
  void write_return(source_pair& pair, held_rows& x, time_ns now, outgoing& out);

  worker_identity self_;
  bool checksum_;
  std::size_t carrier_bytes_;
  std::uint64_t uses_ = 0;
  std::uint64_t frames_dropped_ = 0;
  std::uint64_t peers_lost_ = 0;
  std::uint64_t peers_left_ = 0;
  std::uint64_t rows_corrupt_ = 0;
  duration_ns stall_ns_ = 0;
  std::vector<source_pair> pairs_;
  bounded_ring<arrival_ticket> ready_;
  bounded_ring<arrival_ticket> refused_;
  bounded_ring<arrival_ticket> given_up_;
  bounded_ring<source_id> unreached_;
  std::vector<displaced_rows> displaced_;  // no more than there are banks
  std::shared_ptr<RowMemoryWatch> watch_;
  std::uint32_t comebacks_ = 0;  // at most so many pairs are `back`
  std::uint32_t unheard_ = 0;    // at most so many banks of pairs that live are `unheard`
};

}  // namespace moetier::transport
