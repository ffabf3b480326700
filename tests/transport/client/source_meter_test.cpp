// Parts of a call, ends of tickets, and what adds up over sessions.
#include "transport/client/source/source_meter.hpp"

#include <gtest/gtest.h>

#include "transport/client/source/source_session.hpp"

namespace moetier::client {
namespace {

std::uint64_t tickets(const source_reading& r, status end) {
  for (std::size_t i = 0; i < k_ticket_ends.size(); ++i) {
    if (k_ticket_ends[i] == end) return r.tickets[i];
  }
  return 0;
}

std::uint64_t sum_of(const source_reading& r, round_part p) {
  return r.parts[static_cast<std::size_t>(p)].sum;
}

TEST(source_meter, what_the_worker_held_is_no_part_of_the_wire) {
  source_meter m;
  m.count_call({.route = 10, .pack = 5, .wait = 70, .sum = 3, .total = 98, .air = 80, .held = 60});
  const source_reading r = m.read();
  EXPECT_EQ(sum_of(r, round_part::route), 15u);
  EXPECT_EQ(sum_of(r, round_part::wire), 20u);
  EXPECT_EQ(sum_of(r, round_part::wait), 60u);
  EXPECT_EQ(sum_of(r, round_part::sum), 3u);
  EXPECT_EQ(tickets(r, status::ok), 1u);
}

TEST(source_meter, a_worker_that_claims_more_time_than_passed_is_not_believed) {
  source_meter m;
  m.count_call({.air = 80, .held = 4'000'000'000});
  EXPECT_EQ(sum_of(m.read(), round_part::wire), 0u);
  EXPECT_EQ(sum_of(m.read(), round_part::wait), 80u);
}

TEST(source_meter, counts_ends_and_causes_and_adds_sessions_up) {
  source_meter one;
  source_meter two;
  one.count_failure(status::timeout, 2);
  two.count_failure(status::no_memory, 0);  // no list has it
  two.count_refusal(reason::router_nonfinite);
  two.count_refusal(reason::capacity);  // nothing of routing
  two.count_step(7);
  two.count_stall(9);
  source_reading all = one.read();
  all += two.read();
  EXPECT_EQ(tickets(all, status::timeout), 1u);
  EXPECT_EQ(tickets(all, status::internal), 1u);
  EXPECT_EQ(all.replays, 2u);
  EXPECT_EQ(all.route_faults, (std::array<std::uint64_t, k_route_faults>{1, 0, 0, 0}));
  EXPECT_EQ(all.step.sum, 7u);
  EXPECT_EQ(all.stall, 9u);
}

}  // namespace
}  // namespace moetier::client
