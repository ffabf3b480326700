#pragma once
// Which connections a listener keeps: a value that is told of comings, words and goings, and says
// whom to let go. A connection is unproven until its first whole message (inside TLS: after the
// handshake); of those the oldest makes room for the newest, so that silent ones lock nobody out.
// Proven ones make room when they have said nothing for a while, since every client pings. No peer
// holds more than its part. Time comes in. Thread: one at a time.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "schemas/base/time.hpp"

namespace moetier::coordinator {

struct connection_limits {
  std::size_t unproven_max = 0;
  std::size_t proven_max = 0;
  std::size_t peer_max =
      0;  // proven ones of one name; of those without a name there is no such bound
  duration_ns first_word = 0;      // from coming to the first whole message
  duration_ns silence = 0;         // of a proven one
  duration_ns yielding_after = 0;  // a proven one silent for so long makes room when all are taken
};

class connection_book final {
 public:
  using number = std::uint64_t;

  explicit connection_book(const connection_limits& limits) : limits_(limits) {}

  struct admission {
    number id = 0;
    std::optional<number> leaves;  // the oldest unproven one, when there are too many
  };
  admission admit(time_ns now);

  struct hearing {
    bool welcome = true;           // false: its first word, and no room for it
    std::optional<number> leaves;  // a silent one that makes room
  };
  // `peer`: the name that TLS proved, or "".
  hearing heard(number id, std::string_view peer, time_ns now);

  void gone(number id);

  struct overdue {
    number id = 0;
    bool proven = false;
  };
  std::vector<overdue> late(time_ns now) const;

  std::size_t unproven() const noexcept { return entries_.size() - proven_; }
  std::size_t proven() const noexcept { return proven_; }

 private:
  struct entry {
    time_ns at = 0;  // when it came; of a proven one: when it was last heard
    bool proven = false;
    std::string peer;
  };
  std::optional<number> most_silent(time_ns now) const;

  const connection_limits limits_;
  number last_ = 0;
  std::map<number, entry> entries_;
  std::size_t proven_ = 0;
};

}  // namespace moetier::coordinator
