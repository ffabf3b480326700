// Banks and the order of calls, late rows, waiting.

#include <atomic>
#include <set>
#include <thread>

#include "tests/transport/carrier_conformance.hpp"

namespace moetier::transport {
namespace {

// ---- credits and order of calls ----

TEST_P(conformance, answers_no_credit_past_the_banks_and_frees_them_on_release) {
  for (std::uint32_t banks = 2; banks <= 4; ++banks) {
    source_shape shape = small_shape();
    shape.banks = banks;
    test_source s = tier.make_source(static_cast<std::uint16_t>(banks), shape);
    test_worker w = tier.make_worker(static_cast<std::uint16_t>(banks));
    tier.attach(s, w);
    std::vector<exchange_ticket> tickets;
    for (std::uint32_t i = 0; i < banks; ++i) tickets.push_back(s.send(w.identity.worker, i, 1, i));
    exchange_ticket refused = 0;
    EXPECT_EQ(s.half->open(w.identity.worker, s.key(9), refused), comm_status::no_credit);
    EXPECT_EQ(refused, 0u);
    for (std::uint32_t i = 0; i < banks; ++i) w.answer(tier.receive(s, w), 1, 50 + i);
    std::set<exchange_ticket> ended;
    for (std::uint32_t i = 0; i < banks; ++i) ended.insert(tier.collect(s, w).ticket);
    EXPECT_EQ(ended, std::set<exchange_ticket>(tickets.begin(), tickets.end()));
    // A return frees nothing by itself: its rows are still being read.
    EXPECT_EQ(s.half->open(w.identity.worker, s.key(9), refused), comm_status::no_credit);
    s.half->release(tickets.back());
    EXPECT_EQ(s.half->open(w.identity.worker, s.key(9), refused), comm_status::ok);
    s.half->release(refused);
  }
}

TEST_P(conformance, uses_any_free_bank_while_another_is_busy) {
  test_source s = tier.make_source(1);
  test_worker w = tier.make_worker(1);
  tier.attach(s, w);
  s.send(w.identity.worker, 1, 1, 1);
  const arrival busy = tier.receive(s, w);
  for (std::uint64_t step = 2; step < 20; ++step) tier.exchange(s, w, step, 2);
  w.answer(busy, 1, 3);
  const returned r = tier.collect(s, w);
  EXPECT_TRUE(holds(r.payload, 3));
}

TEST_P(conformance, refuses_calls_that_the_state_forbids_and_changes_nothing) {
  test_source s = tier.make_source(1);
  test_worker w = tier.make_worker(1);
  tier.attach(s, w);
  exchange_ticket ticket = 0;
  EXPECT_EQ(s.half->open(worker_id{9}, s.key(1), ticket), comm_status::unknown_member);
  EXPECT_EQ(s.half->dispatch(0, 1, 0), comm_status::sequence);
  EXPECT_EQ(s.half->dispatch(12345, 1, 0), comm_status::sequence);
  EXPECT_EQ(s.half->expire(12345), comm_status::sequence);
  s.half->release(12345);

  ASSERT_EQ(s.half->open(w.identity.worker, s.key(1), ticket), comm_status::ok);
  EXPECT_EQ(s.half->expire(ticket), comm_status::sequence);
  EXPECT_TRUE(s.half->send_region(ticket, s.shape.rows_max + 1).empty());
  EXPECT_EQ(s.half->dispatch(ticket, s.shape.rows_max + 1, 0), comm_status::capacity);
  fill(s.half->send_region(ticket, 2), 4);
  EXPECT_EQ(s.half->dispatch(ticket, 2, 0), comm_status::ok);
  EXPECT_EQ(s.half->dispatch(ticket, 2, 0), comm_status::sequence);
  EXPECT_TRUE(s.half->send_region(ticket, 2).empty());
  s.half->release(ticket);  // SENT: no effect

  const arrival a = tier.receive(s, w);
  EXPECT_TRUE(holds(a.hidden, 4));
  EXPECT_EQ(w.half->give_back(0, 0, status::ok, 0), comm_status::unknown_member);
  EXPECT_EQ(w.half->give_back(a.ticket, s.shape.return_rows_max + 1, status::ok, 0),
            comm_status::capacity);
  w.answer(a, 2, 5);
  EXPECT_EQ(w.half->give_back(a.ticket, 2, status::ok, 0), comm_status::sequence);
  EXPECT_TRUE(w.half->return_region(a.ticket).empty());
  const returned r = tier.collect(s, w);
  EXPECT_TRUE(holds(r.payload, 5));
  EXPECT_EQ(s.half->expire(ticket), comm_status::sequence);
  s.half->release(ticket);
  EXPECT_EQ(s.half->dispatch(ticket, 2, 0), comm_status::sequence);
}

TEST_P(conformance, gives_up_an_open_exchange_without_a_message) {
  test_source s = tier.make_source(1);
  test_worker w = tier.make_worker(1);
  tier.attach(s, w);
  for (int round = 0; round < 10; ++round) {
    exchange_ticket ticket = 0;
    ASSERT_EQ(s.half->open(w.identity.worker, s.key(1), ticket), comm_status::ok);
    s.half->release(ticket);
  }
  tier.exchange(s, w, 2, 1);
  EXPECT_EQ(w.half->counters().messages_received, 1u);
}

// ---- lateness ----

TEST_P(conformance, frees_the_bank_of_a_late_exchange_when_its_return_comes) {
  test_source s = tier.make_source(1);
  test_worker w = tier.make_worker(1);
  tier.attach(s, w);
  const exchange_ticket late = s.send(w.identity.worker, 1, 2, 1);
  const arrival a = tier.receive(s, w);
  EXPECT_EQ(s.half->expire(late), comm_status::ok);
  EXPECT_EQ(s.half->expire(late), comm_status::sequence);
  s.half->release(late);  // LATE: no effect
  exchange_ticket other = 0;
  exchange_ticket refused = 0;
  ASSERT_EQ(s.half->open(w.identity.worker, s.key(2), other), comm_status::ok);
  EXPECT_EQ(s.half->open(w.identity.worker, s.key(3), refused), comm_status::no_credit);

  w.answer(a, 2, 5);
  EXPECT_TRUE(happens([&] {
    returned r;
    EXPECT_FALSE(s.poll_one(r)) << "a late return is nobody's";
    std::vector<arrival> none;
    w.half->poll(none);
    return s.half->counters().late_returns == 1;
  }));
  EXPECT_EQ(s.half->open(w.identity.worker, s.key(3), refused), comm_status::ok);
}

TEST_P(conformance, keeps_late_rows_out_of_the_next_exchange) {
  const source_shape large{.rows_max = 512,
                           .hidden_stride = 4096,
                           .top_k = 2,
                           .return_stride = 4096,
                           .return_rows_max = 512,
                           .banks = 2};
  test_source s = tier.make_source(1, large);
  test_worker w = tier.make_worker(1);
  tier.attach(s, w);
  for (std::uint64_t step = 1; step <= 20; ++step) {
    const exchange_ticket late = s.send(w.identity.worker, 2 * step, 512, 1);
    const arrival a = tier.receive(s, w);
    w.answer(a, 512, 2);
    ASSERT_EQ(s.half->expire(late), comm_status::ok);
    tier.exchange(s, w, 2 * step + 1, 512);
  }
  EXPECT_TRUE(happens([&] {
    tier.settle(s, w);
    return s.half->counters().late_returns == 20;
  }));
}

// ---- waiting ----

TEST_P(conformance, sleeps_until_rows_come_and_until_a_return_comes) {
  test_source s = tier.make_source(1);
  test_worker w = tier.make_worker(1);
  tier.attach(s, w);
  constexpr std::uint64_t steps = 200;
  std::thread engine([&] {
    for (std::uint64_t served = 0; served < steps;) {
      arrival a;
      if (w.poll_one(a)) {
        w.answer(a, a.rows, 3);
        ++served;
      } else {
        w.half->wait(std::chrono::nanoseconds(0), k_patience);
      }
    }
    // The last return may need this end to move on.
    std::vector<arrival> none;
    for (int round = 0; round < 100; ++round) {
      w.half->poll(none);
      w.half->wait(std::chrono::nanoseconds(0), std::chrono::milliseconds(1));
    }
  });
  for (std::uint64_t step = 1; step <= steps; ++step) {
    const exchange_ticket ticket = s.send(w.identity.worker, step, 4, 2);
    returned r;
    EXPECT_TRUE(happens([&] {
      if (s.poll_one(r)) return true;
      s.half->wait(std::chrono::nanoseconds(0), k_patience);
      return s.poll_one(r);
    }));
    EXPECT_EQ(r.ticket, ticket);
    EXPECT_EQ(r.result, comm_status::ok);
    EXPECT_TRUE(holds(r.payload, 3));
    s.half->release(ticket);
  }
  engine.join();
}

TEST_P(conformance, ends_a_wait_by_its_limit_and_by_wake) {
  test_worker w = tier.make_worker(1);
  const auto ms = [](int n) { return std::chrono::milliseconds(n); };
  w.half->wait(ms(1), ms(5));  // nothing ever comes: returns
  w.half->wake();
  w.half->wait(ms(0), k_patience);  // woken before it slept
  std::atomic<int> woken{0};
  std::thread engine([&] {
    for (int i = 0; i < 50; ++i) {
      w.half->wait(ms(0), k_patience);
      woken.store(i + 1);
    }
  });
  const auto start = std::chrono::steady_clock::now();
  EXPECT_TRUE(happens([&] {
    w.half->wake();
    std::this_thread::yield();
    return woken.load() == 50;
  }));
  engine.join();
  EXPECT_LT(std::chrono::steady_clock::now() - start, k_patience) << "it slept through a wake";
}

TEST_P(conformance, keeps_a_wake_that_comes_before_a_poll) {
  test_worker w = tier.make_worker(1);
  arrival a;
  w.half->wake();
  EXPECT_FALSE(w.poll_one(a));
  const auto start = std::chrono::steady_clock::now();
  w.half->wait(std::chrono::nanoseconds(0), k_patience);
  EXPECT_LT(std::chrono::steady_clock::now() - start, k_patience / 2);
}

}  // namespace
}  // namespace moetier::transport
