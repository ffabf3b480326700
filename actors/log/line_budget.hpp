#pragma once
// How many lines the log may still write: twenty a second of one event, and one a second of one
// event, reason and peer where a line says that something is refused or wrong. Bounded itself: with
// too many peers at once the event's own limit is what holds. No clock inside. Thread: owner.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "schemas/base/time.hpp"

namespace moetier {

class line_budget final {
 public:
  static constexpr std::uint32_t k_lines_per_event_and_second = 20;
  static constexpr std::size_t k_events_max = 256;
  static constexpr std::size_t k_peers_max = 1024;

  // How many lines of this event were left out since the last one that was written; nothing: this
  // one is left out too. `peer`: names the reason and the peer of trouble; empty = no trouble.
  std::optional<std::uint64_t> take(std::string_view event, std::string_view peer, time_ns now);

 private:
  struct of_event {
    time_ns second_began = 0;
    std::uint32_t written = 0;
    std::uint64_t left_out = 0;  // since the last line
  };
  bool peer_may(std::string_view event, std::string_view peer, time_ns now);

  std::map<std::string, of_event, std::less<>> events_;
  std::map<std::string, time_ns, std::less<>> peers_;  // by event and peer: its last line
};

}  // namespace moetier
