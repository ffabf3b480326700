#include "transport/waits/wait_document.hpp"

#include <algorithm>
#include <map>

#include <fmt/core.h>

namespace moetier::transport {
namespace {

constexpr std::size_t k_failures_shown = 32;

std::string head(std::string_view schema, const wait_ring& ring, std::string_view peers,
                 std::size_t kept) {
  return fmt::format(R"({{"schema":"{}","peers_are":"{}","recorded":{},"kept":{})", schema, peers,
                     ring.recorded(), kept);
}

// Numbers and names of a closed list alone: nothing to escape.
std::string wait_text(const wait_record& w, time_ns now) {
  return fmt::format(
      R"({{"ago_ns":{},"peer":{},"session":{},"step":{},"attempt":{},"layer":{},"micro_batch":{},)"
      R"("chunk":{},"bytes_due":{},"bytes_seen":{},"age_ns":{},"status":"{}"}})",
      now - std::min(w.ended, now), w.peer, w.session.value, w.step, w.attempt, w.layer.value,
      w.micro_batch, w.chunk, w.bytes_due, w.bytes_seen, w.age, status_name(w.outcome));
}

struct peer_sum {
  std::vector<duration_ns> ages;
  std::uint64_t bytes_seen = 0;
  std::map<status, std::uint64_t> ends;
};

std::string peer_text(std::uint16_t peer, peer_sum& sum) {
  std::ranges::sort(sum.ages);
  const auto at = [&](std::size_t percent) {
    return sum.ages[(sum.ages.size() - 1) * percent / 100];
  };
  std::string ends;
  for (const auto& [end, count] : sum.ends) {
    ends += fmt::format(R"({}"{}":{})", ends.empty() ? "" : ",", status_name(end), count);
  }
  return fmt::format(
      R"({{"peer":{},"waits":{},"bytes_seen":{},"age_ns":{{"p50":{},"p99":{},"max":{}}},)"
      R"("status":{{{}}}}})",
      peer, sum.ages.size(), sum.bytes_seen, at(50), at(99), sum.ages.back(), ends);
}

}  // namespace

std::string flight_document(const wait_ring& ring, std::string_view peers, time_ns now) {
  const std::vector<wait_record> waits = ring.newest();
  std::string text = head("moetier.flight/1", ring, peers, waits.size()) + R"(,"waits":[)";
  for (std::size_t i = 0; i < waits.size(); ++i) {
    if (i != 0) text += ',';
    text += wait_text(waits[i], now);
  }
  return text + "]}\n";
}

std::string waits_document(const wait_ring& ring, std::string_view peers, time_ns now) {
  const std::vector<wait_record> waits = ring.newest();
  std::map<std::uint16_t, peer_sum> sums;
  std::string failures;
  std::size_t shown = 0;
  for (auto w = waits.rbegin(); w != waits.rend(); ++w) {
    peer_sum& sum = sums[w->peer];
    sum.ages.push_back(w->age);
    sum.bytes_seen += w->bytes_seen;
    ++sum.ends[w->outcome];
    if (w->outcome == status::ok || shown == k_failures_shown) continue;
    failures += fmt::format("{}{}", shown++ == 0 ? "" : ",", wait_text(*w, now));
  }
  std::string by_peer;
  for (auto& [peer, sum] : sums) {
    by_peer += fmt::format("{}{}", by_peer.empty() ? "" : ",", peer_text(peer, sum));
  }
  return fmt::format(R"({},"peers":[{}],"failed":[{}]}})",
                     head("moetier.waits/1", ring, peers, waits.size()), by_peer, failures) +
         "\n";
}

}  // namespace moetier::transport
