#pragma once
// The metrics of the coordinator's border: who was turned away before or after it proved who it is,
// and how long the certificates last. The only place that names them. Thread: any.

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "actors/http/metric_text.hpp"

namespace moetier::http {

struct border_figures {
  using by_reason = std::vector<std::pair<std::string_view, std::uint64_t>>;

  std::uint64_t connections = 0;  // open
  by_reason handshakes_refused;
  by_reason connections_ended;  // by the coordinator
  std::uint64_t calls = 0;
  std::uint64_t calls_refused = 0;
  std::uint64_t calls_denied = 0;
  // Seconds until a link's certificate ends; only links that have one.
  std::vector<std::pair<std::string_view, double>> certificates_left_s;
};

void add_border(metric_text& m, const border_figures& f);

}  // namespace moetier::http
