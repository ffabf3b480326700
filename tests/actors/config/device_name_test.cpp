#include "actors/config/device_name.hpp"

#include <gtest/gtest.h>

namespace moetier::config {
namespace {

TEST(device_names, are_the_processor_or_a_numbered_device) {
  EXPECT_EQ(parse_device("auto"), device_name{});
  EXPECT_EQ(parse_device("cpu"), device_name{});
  EXPECT_EQ(parse_device("cuda"), (device_name{.cuda = true}));
  EXPECT_EQ(parse_device("cuda:0"), (device_name{.cuda = true, .ordinal = 0}));
  EXPECT_EQ(parse_device("cuda:63"), (device_name{.cuda = true, .ordinal = 63}));
  for (const char* none : {"", "gpu", "CUDA", "cuda:", "cuda:64", "cuda:-1", "cuda:1x", "cuda0"})
    EXPECT_EQ(parse_device(none), std::nullopt) << none;
}

TEST(device_names, of_workers_go_round_unless_one_is_named) {
  const device_name any{.cuda = true};
  EXPECT_EQ(device_of_worker(any, 0, 2), "cuda:0");
  EXPECT_EQ(device_of_worker(any, 1, 2), "cuda:1");
  EXPECT_EQ(device_of_worker(any, 2, 2), "cuda:0");
  EXPECT_EQ(device_of_worker({.cuda = true, .ordinal = 3}, 2, 2), "cuda:3");
}

}  // namespace
}  // namespace moetier::config
