// What a histogram counts, adds up and says of its values, and that adding allocates nothing.
#include "schemas/base/histogram.hpp"

#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "tests/allocation_count.hpp"

namespace moetier {
namespace {

constexpr std::array<std::uint64_t, 3> k_bounds{10, 20, 50};

TEST(histogram, a_value_at_a_bound_lies_below_it) {
  histogram h(k_bounds);
  for (const std::uint64_t v : {0, 10, 11, 20, 50, 51, 1000}) h.add(v);
  const histogram_reading r = h.read();
  EXPECT_EQ(r.bounds, (std::vector<std::uint64_t>{10, 20, 50}));
  EXPECT_EQ(r.counts, (std::vector<std::uint64_t>{2, 2, 1, 2}));
  EXPECT_EQ(r.sum, 1142u);
  EXPECT_EQ(r.count(), 7u);
}

TEST(histogram, counts_every_value_once_whatever_it_is) {
  std::mt19937_64 random(7);
  histogram h(k_stage_bounds_ns);
  std::uint64_t sum = 0;
  for (int i = 0; i < 10'000; ++i) {
    const std::uint64_t v = random() >> (random() % 60 + 2);
    sum += v;
    h.add(v);
  }
  EXPECT_EQ(h.read().count(), 10'000u);
  EXPECT_EQ(h.read().sum, sum);
}

TEST(histogram, readings_add_up_and_an_empty_one_takes_the_others_bounds) {
  histogram one(k_bounds);
  histogram two(k_bounds);
  one.add(5);
  two.add(15);
  two.add(70);
  histogram_reading all;
  all += one.read();
  all += two.read();
  all += histogram_reading{};
  EXPECT_EQ(all.counts, (std::vector<std::uint64_t>{1, 1, 0, 1}));
  EXPECT_EQ(all.sum, 90u);
}

TEST(histogram, a_quantile_is_the_bound_that_enough_values_lie_below) {
  histogram h(k_bounds);
  EXPECT_EQ(h.read().quantile(0.99), 0u);
  for (int i = 0; i < 98; ++i) h.add(1);
  h.add(15);
  h.add(60);
  EXPECT_EQ(h.read().quantile(0.5), 10u);
  EXPECT_EQ(h.read().quantile(0.98), 10u);
  EXPECT_EQ(h.read().quantile(0.99), 20u);
  EXPECT_EQ(h.read().quantile(1.0), 50u);  // above the last bound nothing better is known
}

TEST(histogram, adding_takes_no_memory) {
  histogram h(k_call_bounds_ns);
  const std::size_t before = allocations.load();
  for (std::uint64_t v = 0; v < 1000; ++v) h.add(v * v);
  EXPECT_EQ(allocations.load(), before);
}

TEST(histogram, another_thread_sees_counts_that_only_rise) {
  histogram h(k_bounds);
  std::atomic<bool> done{false};
  std::thread writer([&] {
    for (int i = 0; i < 200'000; ++i) h.add(static_cast<std::uint64_t>(i % 60));
    done = true;
  });
  std::uint64_t last = 0;
  while (!done) {
    const std::uint64_t now = h.read().count();
    EXPECT_GE(now, last);
    last = now;
  }
  writer.join();
  EXPECT_EQ(h.read().count(), 200'000u);
}

}  // namespace
}  // namespace moetier
