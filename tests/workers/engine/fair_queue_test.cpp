#include "workers/engine/fair_queue.hpp"

#include <map>
#include <random>

#include <gtest/gtest.h>

namespace moetier::workers {
namespace {

using place = fair_queue::place;
constexpr auto decode = deadline_class::decode;
constexpr auto prefill = deadline_class::prefill;
constexpr auto batch = deadline_class::batch;

// A queue whose tenants ask for more whenever one of their calls is served: all are backlogged.
struct crowd {
  struct asker {
    fair_queue::tenant who;
    deadline_class urgency;
    duration_ns cost;
  };
  fair_queue queue;
  std::map<place, asker> by_place;
  std::map<std::size_t, duration_ns> time;  // served, by asker's number
  std::map<place, std::size_t> number;

  explicit crowd(std::uint32_t tenants) : queue(1024, tenants) {}

  void ask(std::size_t n, const asker& a) {
    const place p = queue.push(a.who, a.urgency, a.cost);
    by_place[p] = a;
    number[p] = n;
  }
  std::size_t serve(bool again = true) {
    const place p = queue.pop();
    const asker a = by_place.at(p);
    const std::size_t n = number.at(p);
    time[n] += a.cost;
    if (again) ask(n, a);
    return n;
  }
};

TEST(fair_queue, serves_one_tenants_calls_in_their_order) {
  fair_queue q(8, 2);
  const place a = q.push(1, decode, 500);
  const place b = q.push(1, decode, 1);
  const place c = q.push(1, decode, 90'000'000);
  EXPECT_EQ(q.pop(), a);
  EXPECT_EQ(q.pop(), b);
  EXPECT_EQ(q.pop(), c);
  EXPECT_TRUE(q.empty());
}

TEST(fair_queue, shares_time_by_weight_and_not_by_calls) {
  crowd c(3);
  c.queue.set_weight(0, 4);
  c.queue.set_weight(1, 1);
  c.queue.set_weight(2, 1);
  for (int i = 0; i < 4; ++i) {
    c.ask(0, {0, decode, 700 * k_microsecond});
    c.ask(1, {1, decode, 9 * k_millisecond});  // large calls
    c.ask(2, {2, decode, 40 * k_microsecond});
  }
  for (int i = 0; i < 40'000; ++i) c.serve();
  const auto share = [&](std::size_t n) {
    return static_cast<double>(c.time[n]) / static_cast<double>(c.time[0] + c.time[1] + c.time[2]);
  };
  EXPECT_NEAR(share(0), 4.0 / 6, 0.01);
  EXPECT_NEAR(share(1), 1.0 / 6, 0.01);
  EXPECT_NEAR(share(2), 1.0 / 6, 0.01);
}

TEST(fair_queue, lets_a_large_call_pass_before_a_small_one_at_most_once) {
  for (std::uint32_t before = 0; before < 7; ++before) {
    crowd c(2);
    for (int i = 0; i < 8; ++i) c.ask(0, {0, decode, 20 * k_millisecond});
    for (std::uint32_t i = 0; i < before; ++i) c.serve();
    c.ask(1, {1, decode, 300 * k_microsecond});
    std::uint32_t large = 0;
    while (c.serve() == 0) ++large;
    EXPECT_LE(large, 1u) << before;
  }
}

TEST(fair_queue, gives_no_credit_for_time_in_which_a_tenant_asked_for_nothing) {
  crowd c(2);
  for (int i = 0; i < 8; ++i) c.ask(0, {0, decode, k_millisecond});
  for (int i = 0; i < 1000; ++i) c.serve();
  for (int i = 0; i < 100; ++i) c.ask(1, {1, decode, k_millisecond});
  c.time.clear();
  for (int i = 0; i < 100; ++i) c.serve();
  EXPECT_NEAR(static_cast<double>(c.time[0]), static_cast<double>(c.time[1]), 2.0 * k_millisecond);
}

TEST(fair_queue, serves_a_higher_class_first_whatever_the_weights) {
  fair_queue q(8, 2);
  q.set_weight(1, 1000);
  const place b = q.push(1, batch, 10);
  const place p = q.push(1, prefill, 10);
  const place d = q.push(0, decode, 10);
  EXPECT_EQ(q.pop(), d);
  EXPECT_EQ(q.pop(), p);
  EXPECT_EQ(q.pop(), b);
}

TEST(fair_queue, keeps_a_twentieth_of_the_time_for_lower_classes) {
  crowd c(3);
  for (int i = 0; i < 4; ++i) {
    c.ask(0, {0, decode, k_millisecond});
    c.ask(1, {1, prefill, 7 * k_millisecond});
    c.ask(2, {2, batch, 30 * k_millisecond});
  }
  for (int i = 0; i < 200'000; ++i) c.serve();
  const double all = static_cast<double>(c.time[0] + c.time[1] + c.time[2]);
  EXPECT_NEAR(static_cast<double>(c.time[1] + c.time[2]) / all, 0.05, 0.003);
  // And of what is left to them the lowest gets its own twentieth.
  EXPECT_NEAR(static_cast<double>(c.time[2]) / static_cast<double>(c.time[1] + c.time[2]), 0.05,
              0.02);
}

TEST(fair_queue, saves_nothing_for_a_lower_class_that_does_not_wait) {
  crowd c(2);
  for (int i = 0; i < 4; ++i) c.ask(0, {0, decode, k_millisecond});
  for (int i = 0; i < 1000; ++i) c.serve();
  c.ask(1, {1, batch, 2 * k_millisecond});
  for (int i = 0; i < 30; ++i) EXPECT_EQ(c.serve(), 0u) << i;  // it has to save up like anybody
}

TEST(fair_queue, takes_back_what_a_lower_class_saved_up_when_its_calls_go) {
  crowd c(2);
  for (int i = 0; i < 4; ++i) c.ask(0, {0, decode, k_millisecond});
  const place gone = c.queue.push(1, batch, 2 * k_millisecond);  // due behind 38 of the others
  for (int i = 0; i < 30; ++i) EXPECT_EQ(c.serve(), 0u) << i;
  c.queue.remove(gone);
  EXPECT_EQ(c.serve(), 0u);
  c.ask(1, {1, batch, 2 * k_millisecond});
  for (int i = 0; i < 30; ++i) EXPECT_EQ(c.serve(), 0u) << i;
}

TEST(fair_queue, takes_back_what_a_tenant_saved_up_when_its_calls_go) {
  crowd c(2);
  for (int i = 0; i < 4; ++i) c.ask(0, {0, decode, k_millisecond});
  const place gone = c.queue.push(1, decode, 20 * k_millisecond);
  for (int i = 0; i < 15; ++i) EXPECT_EQ(c.serve(), 0u) << i;
  c.queue.remove(gone);
  c.ask(1, {1, decode, 20 * k_millisecond});
  for (int i = 0; i < 15; ++i) EXPECT_EQ(c.serve(), 0u) << i;
}

TEST(fair_queue, serves_first_what_is_paid_for_first) {
  fair_queue q(16, 2);
  const place large = q.push(1, decode, 20 * k_millisecond);
  for (int i = 0; i < 10; ++i) q.push(0, decode, 300 * k_microsecond);
  for (int i = 0; i < 10; ++i) EXPECT_NE(q.pop(), large) << i;
  EXPECT_EQ(q.pop(), large);
}

TEST(fair_queue, forgets_a_call_that_is_removed) {
  fair_queue q(4, 2);
  const place a = q.push(0, decode, 10);
  const place b = q.push(0, decode, 10);
  const place c = q.push(0, decode, 10);
  const place d = q.push(1, prefill, 10);
  EXPECT_TRUE(q.full());
  q.remove(b);
  q.remove(b);
  EXPECT_FALSE(q.full());
  EXPECT_EQ(q.pop(), a);
  q.remove(c);
  EXPECT_EQ(q.pop(), d);
  EXPECT_TRUE(q.empty());
}

TEST(fair_queue, foretells_what_goes_by_before_a_call) {
  fair_queue q(16, 3);
  q.push(0, batch, k_millisecond);
  EXPECT_EQ(q.time_ahead(1, decode, 10), 0u);
  q.push(1, decode, 5 * k_millisecond);
  EXPECT_EQ(q.time_ahead(0, batch, 10), 6 * k_millisecond);  // the higher class and its own
  // Of another tenant's backlog only what is its due meanwhile, and one call over it.
  for (int i = 0; i < 10; ++i) q.push(2, decode, k_millisecond);
  EXPECT_EQ(q.time_ahead(0, decode, 2 * k_millisecond),
            (2 + 5) * k_millisecond  // tenant 1: its one call
                - 2 * k_millisecond + 3 * k_millisecond);
}

// Whatever comes and goes, every call is served once, places never mix and nothing is left behind.
TEST(fair_queue, loses_and_doubles_nothing) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    std::mt19937_64 random(seed);
    fair_queue q(64, 5);
    std::map<place, int> waiting;
    for (int turn = 0; turn < 3000; ++turn) {
      const auto dice = random() % 10;
      if (dice < 5 && !q.full()) {
        const place p = q.push(static_cast<std::uint32_t>(random() % 5),
                               k_all_deadline_classes[random() % 3], random() % 5'000'000);
        EXPECT_EQ(waiting.count(p), 0u) << "seed " << seed;
        waiting[p] = turn;
      } else if (dice < 9 && !q.empty()) {
        EXPECT_EQ(waiting.erase(q.pop()), 1u) << "seed " << seed;
      } else if (!waiting.empty()) {
        const place p = waiting.begin()->first;
        q.remove(p);
        waiting.erase(p);
      }
      ASSERT_EQ(q.size(), waiting.size()) << "seed " << seed;
    }
    while (!q.empty()) EXPECT_EQ(waiting.erase(q.pop()), 1u) << "seed " << seed;
    EXPECT_TRUE(waiting.empty()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace moetier::workers
