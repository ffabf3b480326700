#include "transport/client/source/source_meter.hpp"

#include <algorithm>

#include "transport/client/source/source_session.hpp"

namespace moetier::client {
namespace {

std::size_t place_of(status end) noexcept {
  const auto found = std::find(k_ticket_ends.begin(), k_ticket_ends.end(), end);
  const auto at = static_cast<std::size_t>(found - k_ticket_ends.begin());
  return std::min(at, k_ticket_ends.size() - 1);
}

template <std::size_t N>
void add(std::array<std::uint64_t, N>& to, const std::array<std::uint64_t, N>& more) {
  for (std::size_t i = 0; i < N; ++i) to[i] += more[i];
}

template <std::size_t N>
std::array<std::uint64_t, N> read_all(const std::array<std::atomic<std::uint64_t>, N>& from) {
  std::array<std::uint64_t, N> r{};
  for (std::size_t i = 0; i < N; ++i) r[i] = from[i].load(std::memory_order_relaxed);
  return r;
}

}  // namespace

std::string_view round_part_name(round_part p) noexcept {
  switch (p) {
    case round_part::route: return "route";
    case round_part::wire: return "wire";
    case round_part::wait: return "wait";
    case round_part::sum: return "sum";
  }
  return "sum";
}

std::string_view route_fault_name(route_fault f) noexcept {
  switch (f) {
    case route_fault::nonfinite: return "nonfinite";
    case route_fault::starved: return "starved";
    case route_fault::range: return "range";
    case route_fault::duplicate: return "duplicate";
  }
  return "range";
}

source_reading& source_reading::operator+=(const source_reading& other) {
  step += other.step;
  for (std::size_t p = 0; p < k_round_parts; ++p) parts[p] += other.parts[p];
  add(tickets, other.tickets);
  add(route_faults, other.route_faults);
  replays += other.replays;
  stall += other.stall;
  return *this;
}

void source_meter::count_call(const call_times& t) noexcept {
  const auto part = [&](round_part p, duration_ns took) {
    parts_[static_cast<std::size_t>(p)].add(took);
  };
  part(round_part::route, t.route + t.pack);
  part(round_part::wire, t.air - std::min(t.air, t.held));
  part(round_part::wait, std::min(t.air, t.held));
  part(round_part::sum, t.sum);
  raise(tickets_[place_of(status::ok)], 1);
  raise(replays_, t.replays);
}

void source_meter::count_failure(status end, std::uint32_t replays) noexcept {
  raise(tickets_[place_of(end)], 1);
  raise(replays_, replays);
}

void source_meter::count_refusal(reason why) noexcept {
  const auto fault = [&](route_fault f) { raise(route_faults_[static_cast<std::size_t>(f)], 1); };
  switch (why) {
    case reason::router_nonfinite: return fault(route_fault::nonfinite);
    case reason::router_starved: return fault(route_fault::starved);
    case reason::invalid_expert: return fault(route_fault::range);
    case reason::duplicate_expert: return fault(route_fault::duplicate);
    default: return;
  }
}

source_reading source_meter::read() const {
  source_reading r{.step = step_.read(),
                   .parts = {},
                   .tickets = read_all(tickets_),
                   .route_faults = read_all(route_faults_),
                   .replays = replays_.load(std::memory_order_relaxed),
                   .stall = stall_.load(std::memory_order_relaxed)};
  for (std::size_t p = 0; p < k_round_parts; ++p) r.parts[p] = parts_[p].read();
  return r;
}

}  // namespace moetier::client
