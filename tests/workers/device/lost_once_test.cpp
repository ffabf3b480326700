#include "workers/device/lost_once.hpp"

#include <vector>

#include <gtest/gtest.h>

namespace moetier::workers {
namespace {

TEST(a_lost_device, is_told_once_with_the_first_word) {
  std::vector<error> told;
  lost_once lost([&](const error& why) { told.push_back(why); });
  EXPECT_FALSE(lost.is_lost());
  lost.tell("first");
  lost.tell("second");
  EXPECT_TRUE(lost.is_lost());
  EXPECT_EQ(lost.why().text, "the device failed: first");
  EXPECT_EQ(lost.why().why, reason::device_lost);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].text, "the device failed: first");
}

// The sink may look at what it is told of.
TEST(a_lost_device, is_lost_when_its_sink_hears_of_it) {
  lost_once* seen = nullptr;
  lost_once lost([&](const error& why) {
    EXPECT_TRUE(seen->is_lost());
    EXPECT_EQ(seen->why().text, why.text);
  });
  seen = &lost;
  lost.tell("x");
  lost_once({}).tell("nobody listens");
}

}  // namespace
}  // namespace moetier::workers
