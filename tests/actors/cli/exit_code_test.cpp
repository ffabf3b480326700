#include "actors/cli/exit_code.hpp"

#include <gtest/gtest.h>

namespace moetier::cli {
namespace {

TEST(exit_codes, are_the_documented_numbers) {
  EXPECT_EQ(static_cast<int>(exit_code::done), 0);
  EXPECT_EQ(static_cast<int>(exit_code::failed), 1);
  EXPECT_EQ(static_cast<int>(exit_code::usage), 2);
  EXPECT_EQ(static_cast<int>(exit_code::unreached), 3);
  EXPECT_EQ(static_cast<int>(exit_code::refused), 4);
  EXPECT_EQ(static_cast<int>(exit_code::deadline), 5);
  EXPECT_EQ(static_cast<int>(exit_code::degraded), 6);
  EXPECT_EQ(static_cast<int>(exit_code::bad_input), 7);
  EXPECT_EQ(static_cast<int>(exit_code::check_failed), 8);
  EXPECT_EQ(static_cast<int>(exit_code::address_in_use), 9);
  EXPECT_EQ(static_cast<int>(exit_code::device_lost), 10);
  EXPECT_EQ(static_cast<int>(exit_code::internal), 70);
}

TEST(exit_codes, follow_from_reason_and_status) {
  EXPECT_EQ(exit_code_of(make_error(reason::config_invalid, "a", "b", "c")), exit_code::usage);
  EXPECT_EQ(exit_code_of(make_error(reason::coordinator_unreached, "x")), exit_code::unreached);
  EXPECT_EQ(exit_code_of(make_error(reason::placement_invalid, "x")), exit_code::refused);
  EXPECT_EQ(exit_code_of(make_error(reason::degrade_forbidden, "x")), exit_code::refused);
  EXPECT_EQ(exit_code_of(make_error(reason::agreement_failed, "x")), exit_code::refused);
  EXPECT_EQ(exit_code_of(make_error(reason::worker_lost, 1, 2)), exit_code::deadline);
  EXPECT_EQ(exit_code_of(make_error(reason::file_malformed, "f", "x")), exit_code::bad_input);
  EXPECT_EQ(exit_code_of(make_error(reason::address_in_use, "x")), exit_code::address_in_use);
  EXPECT_EQ(exit_code_of(make_error(reason::no_replica, 1, 2)), exit_code::failed);
  EXPECT_EQ(exit_code_of(make_error(reason::model_mismatch, "a", "b")), exit_code::bad_input);
  EXPECT_EQ(exit_code_of(make_error(reason::limit_exceeded, "x", 2, 1)), exit_code::failed);
  EXPECT_EQ(exit_code_of(make_error(reason::capacity, 2, 1)), exit_code::failed);
  EXPECT_EQ(exit_code_of(make_error(reason::device_lost, "x")), exit_code::device_lost);
  EXPECT_EQ(exit_code_of(make_error(reason::internal_error, "x")), exit_code::internal);
}

}  // namespace
}  // namespace moetier::cli
