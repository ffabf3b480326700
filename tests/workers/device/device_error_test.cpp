#include "workers/device/device_error.hpp"

#include <gtest/gtest.h>

namespace moetier::workers {
namespace {

TEST(device_errors, fall_into_classes_by_number) {
  EXPECT_EQ(device_error_of(0), device_error::none);
  EXPECT_EQ(device_error_of(2), device_error::out_of_memory);
  for (const int code : {1, 9, 98, 209, 701, 720, 900, 908})
    EXPECT_EQ(device_error_of(code), device_error::refused) << code;
  for (const int code : {3, 35, 46, 100, 101, 802, 803})
    EXPECT_EQ(device_error_of(code), device_error::absent) << code;
  // Illegal address, hardware stack error, ECC, launch failure, assert, launch timeout.
  for (const int code : {700, 714, 214, 719, 710, 702})
    EXPECT_EQ(device_error_of(code), device_error::context_dead) << code;
}

TEST(device_errors, of_no_known_number_are_the_worst) {
  for (const int code : {-5, 4, 999, 100000})
    EXPECT_EQ(device_error_of(code), device_error::context_dead) << code;
}

}  // namespace
}  // namespace moetier::workers
