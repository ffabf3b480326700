#include "actors/roles/job_thread.hpp"

#include <chrono>
#include <future>
#include <vector>

#include <gtest/gtest.h>

namespace moetier::roles {
namespace {

TEST(job_thread, does_jobs_in_the_order_of_their_posting) {
  std::vector<int> done;
  {
    job_thread jobs;
    std::promise<void> last;
    for (int i = 0; i < 100; ++i) jobs.post([&done, i] { done.push_back(i); });
    jobs.post([&last] { last.set_value(); });
    last.get_future().wait();
  }
  ASSERT_EQ(done.size(), 100u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(done[static_cast<std::size_t>(i)], i);
}

TEST(job_thread, its_end_waits_for_the_job_under_way) {
  std::promise<void> began, never;
  bool done = false;
  {
    job_thread jobs;
    jobs.post([&] {
      began.set_value();
      never.get_future().wait_for(std::chrono::milliseconds(20));
      done = true;
    });
    began.get_future().wait();
  }
  EXPECT_TRUE(done);
}

}  // namespace
}  // namespace moetier::roles
