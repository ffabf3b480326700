#include "workers/engine/waiting_calls.hpp"

#include "tests/allocation_count.hpp"

#include <gtest/gtest.h>

#include "transport/time_needed.hpp"

namespace moetier::workers {
namespace {

constexpr time_ns k_now = 1'000 * k_second;

transport::arrival call(std::uint16_t source, std::uint32_t rows, duration_ns budget) {
  transport::arrival a;
  a.ticket = source + 1u;
  a.source = source_id(source);
  a.rows = rows;
  a.budget_us = static_cast<std::uint32_t>(budget / k_microsecond);
  return a;
}

// Two sources of one tenant, one of another; a call of 100 rows is known to take 10 ms.
struct waiting_calls_test : testing::Test {
  waiting_calls calls{8};
  waiting_calls_test() {
    calls.attach(source_id(0), "greedy", 1, deadline_class::decode);
    calls.attach(source_id(1), "greedy", 1, deadline_class::decode);
    calls.attach(source_id(2), "modest", 1, deadline_class::decode);
    calls.attach(source_id(3), "greedy", 1, deadline_class::batch);
    for (int i = 0; i < 4; ++i) {
      EXPECT_EQ(calls.admit(call(0, 100, k_second), k_now).code, status::ok);
      serve(10 * k_millisecond);
    }
  }
  source_id serve(duration_ns took) {
    waiting_calls::verdict late;
    const transport::arrival work = calls.next(k_now, late);
    EXPECT_EQ(late.code, status::ok);
    calls.served(took, k_now + took);
    return work.source;
  }
};

TEST_F(waiting_calls_test, refuses_on_arrival_what_cannot_end_behind_what_waits) {
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(calls.admit(call(0, 100, 200 * k_millisecond), k_now).code, status::ok) << i;
    EXPECT_EQ(calls.admit(call(1, 100, 200 * k_millisecond), k_now).code, status::ok) << i;
  }
  const auto refused = calls.admit(call(1, 100, 165 * k_millisecond), k_now);
  EXPECT_EQ(refused.code, status::overloaded);
  EXPECT_EQ(transport::time_needed_in(refused.detail),
            (transport::time_needed{.ahead = 80 * k_millisecond, .call = 10 * k_millisecond}));
  EXPECT_EQ(calls.figures().refused_overloaded, 1u);
  EXPECT_EQ(calls.figures().rows_waiting[0], 800u);
  // Another tenant's time is its own: at most as much goes by as it takes itself, and one call.
  EXPECT_EQ(calls.admit(call(2, 100, 50 * k_millisecond), k_now).code, status::ok);
}

// The other half of the call may wait there already: it is refused only if it would end too late.
TEST_F(waiting_calls_test, admits_more_where_another_worker_decides) {
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(calls.admit(call(0, 100, 200 * k_millisecond), k_now).code, status::ok) << i;
  }
  EXPECT_EQ(calls.admit(call(1, 100, 110 * k_millisecond), k_now).code, status::overloaded);
  transport::arrival decided = call(1, 100, 110 * k_millisecond);
  decided.key.flags = transport::k_flag_decided | transport::k_flag_warmup;
  EXPECT_EQ(calls.admit(decided, k_now).code, status::ok);  // 80 ms ahead of it
  EXPECT_EQ(calls.admit(decided, k_now).code, status::overloaded);
}

TEST_F(waiting_calls_test, counts_the_time_in_which_nobody_looked) {
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(calls.admit(call(0, 100, 200 * k_millisecond), k_now).code, status::ok);
  }
  // 30 ms are ahead: of 70 ms left half are enough, of 60 ms .95 of half are not.
  EXPECT_EQ(calls.admit(call(1, 100, 100 * k_millisecond), k_now, 30 * k_millisecond).code,
            status::ok);
  EXPECT_EQ(calls.admit(call(1, 100, 100 * k_millisecond), k_now, 40 * k_millisecond).code,
            status::overloaded);
  EXPECT_EQ(calls.admit(call(1, 100, 100 * k_millisecond), k_now, 200 * k_millisecond).code,
            status::timeout);
  // And its deadline is that much nearer.
  waiting_calls::verdict late;
  for (int i = 0; i < 3; ++i) serve(10 * k_millisecond);
  calls.next(k_now + 61 * k_millisecond, late);
  EXPECT_EQ(late.code, status::timeout);
}

TEST_F(waiting_calls_test, refuses_on_arrival_what_takes_too_long_by_itself) {
  const auto refused = calls.admit(call(0, 100, 9 * k_millisecond), k_now);
  EXPECT_EQ(refused.code, status::timeout);
  EXPECT_EQ(transport::time_needed_in(refused.detail).call, 10 * k_millisecond);
  EXPECT_EQ(calls.admit(call(0, 1, 0), k_now).code, status::timeout);
  EXPECT_EQ(calls.figures().refused_late, 2u);
  EXPECT_EQ(calls.figures().deadline_missed[0], 2u);
  EXPECT_TRUE(calls.empty());
}

TEST_F(waiting_calls_test, computes_nothing_that_became_too_late_in_its_place) {
  ASSERT_EQ(calls.admit(call(0, 100, 50 * k_millisecond), k_now).code, status::ok);
  waiting_calls::verdict late;
  calls.next(k_now + 41 * k_millisecond, late);
  EXPECT_EQ(late.code, status::timeout);
}

TEST_F(waiting_calls_test, counts_a_call_that_ended_behind_its_deadline) {
  ASSERT_EQ(calls.admit(call(3, 100, 50 * k_millisecond), k_now).code, status::ok);
  serve(60 * k_millisecond);
  EXPECT_EQ(calls.figures().deadline_missed[2], 1u);
  EXPECT_EQ(calls.figures().deadline_missed[0], 0u);
}

TEST_F(waiting_calls_test, forgets_the_calls_of_a_source_that_went) {
  ASSERT_EQ(calls.admit(call(0, 7, k_second), k_now).code, status::ok);
  ASSERT_EQ(calls.admit(call(2, 9, k_second), k_now).code, status::ok);
  calls.detach(source_id(0));
  EXPECT_EQ(calls.figures().rows_waiting[0], 9u);
  EXPECT_EQ(serve(k_millisecond), source_id(2));
  EXPECT_TRUE(calls.empty());
  EXPECT_EQ(calls.figures().rows_waiting[0], 0u);
}

TEST_F(waiting_calls_test, computes_nothing_that_its_source_waits_for_no_more) {
  ASSERT_EQ(calls.admit(call(0, 7, k_second), k_now).code, status::ok);
  ASSERT_EQ(calls.admit(call(2, 9, k_second), k_now).code, status::ok);
  EXPECT_TRUE(calls.give_up(1));  // source 0's ticket
  EXPECT_FALSE(calls.give_up(1));
  EXPECT_EQ(serve(k_millisecond), source_id(2));
  EXPECT_FALSE(calls.give_up(3)) << "it has left its place";
  EXPECT_TRUE(calls.empty());
  EXPECT_EQ(calls.figures().given_up, 1u);
  EXPECT_EQ(calls.figures().rows_waiting[0], 0u);
}

TEST_F(waiting_calls_test, holds_an_old_generation_while_rows_of_it_wait) {
  transport::arrival old = call(0, 7, k_second);
  old.key.generation = generation_number(4);
  ASSERT_EQ(calls.admit(old, k_now).code, status::ok);
  EXPECT_TRUE(calls.holds_before(generation_number(5)));
  EXPECT_FALSE(calls.holds_before(generation_number(4)));
  serve(k_millisecond);
  EXPECT_FALSE(calls.holds_before(generation_number(5)));
}

TEST_F(waiting_calls_test, has_a_place_for_all_that_banks_can_hold) {
  for (std::uint16_t s = 0; s < 8; ++s) calls.attach(source_id(s), "t", 1, deadline_class::decode);
  for (std::uint16_t s = 0; s < 8; ++s) {
    for (int bank = 0; bank < 4; ++bank) {
      EXPECT_EQ(calls.admit(call(s, 1, 3600 * k_second), k_now).code, status::ok);
    }
  }
}

TEST_F(waiting_calls_test, allocates_nothing_for_a_call) {
  const std::size_t before = allocations.load();
  for (int i = 0; i < 100; ++i) {
    for (std::uint16_t s = 0; s < 4; ++s) {
      static_cast<void>(calls.admit(call(s, 10u + s, k_second), k_now));
    }
    waiting_calls::verdict late;
    while (!calls.empty()) {
      static_cast<void>(calls.next(k_now, late));
      calls.served(k_millisecond, k_now);
    }
  }
  EXPECT_EQ(allocations.load(), before);
}

}  // namespace
}  // namespace moetier::workers
