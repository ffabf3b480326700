#include "kernels/cpu/compute_pool.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <memory>
#include <vector>

namespace moetier::kernels {
namespace {

TEST(compute_pool, calls_every_item_once_in_each_of_many_short_jobs) {
  for (const unsigned threads : {1u, 2u, 3u, 8u}) {
    compute_pool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    std::vector<std::atomic<std::uint32_t>> calls(40);
    std::uint32_t expected = 0;
    for (std::uint32_t job = 0; job < 2000; ++job) {
      const std::uint32_t items = job % 41;
      pool.for_each(items, [&](std::uint32_t item, unsigned lane) {
        EXPECT_LT(lane, threads);
        calls[item].fetch_add(1, std::memory_order_relaxed);
      });
      expected += items;
      std::uint32_t total = 0;
      for (const auto& c : calls) total += c.load();
      ASSERT_EQ(total, expected) << "job " << job;
    }
    for (std::uint32_t item = 1; item < 40; ++item)
      EXPECT_GE(calls[item - 1].load(), calls[item].load());
  }
}

TEST(compute_pool, shows_the_caller_what_the_items_wrote_without_more_synchronisation) {
  compute_pool pool(4);
  std::vector<std::uint32_t> written(64);
  for (std::uint32_t job = 1; job <= 500; ++job) {
    pool.for_each(64, [&](std::uint32_t item, unsigned) { written[item] = job * 64 + item; });
    for (std::uint32_t item = 0; item < 64; ++item) ASSERT_EQ(written[item], job * 64 + item);
  }
}

TEST(compute_pool, gives_items_that_run_at_once_different_lanes) {
  compute_pool pool(4);
  std::array<std::atomic<int>, 4> inside{};
  for (int job = 0; job < 200; ++job) {
    pool.for_each(32, [&](std::uint32_t, unsigned lane) {
      EXPECT_EQ(inside[lane].fetch_add(1), 0);
      inside[lane].fetch_sub(1);
    });
  }
}

TEST(compute_pool, ends_at_once_when_it_never_worked) {
  for (int i = 0; i < 50; ++i) compute_pool pool(5);
}

}  // namespace
}  // namespace moetier::kernels
