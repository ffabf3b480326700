#include "actors/config/quantity.hpp"

#include <gtest/gtest.h>

#include "actors/config/endpoint.hpp"

namespace moetier::config {
namespace {

TEST(quantity, a_duration_needs_its_unit) {
  EXPECT_EQ(parse_duration("200ms"), 200 * k_millisecond);
  EXPECT_EQ(parse_duration("15us"), 15 * k_microsecond);
  EXPECT_EQ(parse_duration("2h"), 7200 * k_second);
  EXPECT_EQ(parse_duration("0s"), 0U);
  for (const char* bad : {"", "200", "ms", "-1s", "+1s", "1.5s", " 1s", "1s ", "1 s", "010ms", "1S",
                          "1sec", "18446744073709551615h"}) {
    EXPECT_FALSE(parse_duration(bad)) << bad;
  }
}

TEST(quantity, a_size_needs_a_binary_unit) {
  EXPECT_EQ(parse_size("8GiB"), 8ULL << 30);
  EXPECT_EQ(parse_size("0B"), 0U);
  for (const char* bad : {"8", "8GB", "8gib", "8 GiB", "99999999999TiB"}) {
    EXPECT_FALSE(parse_size(bad)) << bad;
  }
}

TEST(quantity, a_count_is_plain_decimal) {
  EXPECT_EQ(parse_count("0"), 0U);
  EXPECT_EQ(parse_count("18446744073709551615"), ~0ULL);
  for (const char* bad : {"", "010", "-1", "+1", "0x10", "1e3", "1_000", "18446744073709551616"}) {
    EXPECT_FALSE(parse_count(bad)) << bad;
  }
}

TEST(quantity, a_budget_is_a_count_in_a_window) {
  EXPECT_EQ(parse_budget("3 in 30s"), (restart_budget{3, 30 * k_second}));
  EXPECT_EQ(parse_budget("0 in 1s"), (restart_budget{0, k_second}));
  for (const char* bad : {"3", "3 in", "3 in 30", "in 30s", "3 in 0s", "3in30s", "-3 in 30s"}) {
    EXPECT_FALSE(parse_budget(bad)) << bad;
  }
}

TEST(quantity, durations_print_as_they_parse) {
  for (const duration_ns d : {0ULL, 1ULL, 999ULL, 1000ULL, 1'500'000'000ULL, 60'000'000'000ULL,
                              3600'000'000'000ULL, 3601'000'000'000ULL}) {
    EXPECT_EQ(parse_duration(duration_text(d)), d) << duration_text(d);
  }
  EXPECT_EQ(duration_text(200 * k_millisecond), "200ms");
}

TEST(endpoint, is_a_host_and_a_port) {
  EXPECT_EQ(parse_endpoint("127.0.0.1:7400"), (endpoint{"127.0.0.1", 7400}));
  EXPECT_EQ(parse_endpoint("[::1]:0"), (endpoint{"::1", 0}));
  EXPECT_EQ(endpoint_text({"::1", 80}), "[::1]:80");
  for (const char* bad : {"", ":7400", "7400", "host:", "host:65536", "host:-1", "::1:80", "a b:1",
                          "a/b:1", "a,b:1"}) {
    EXPECT_FALSE(parse_endpoint(bad)) << bad;
  }
}

TEST(endpoint, loopback_is_judged_by_its_text) {
  for (const char* yes : {"127.0.0.1", "127.1.2.3", "localhost", "::1"}) {
    EXPECT_TRUE(is_loopback(yes)) << yes;
  }
  for (const char* no : {"0.0.0.0", "10.0.0.1", "127.evil.example", "localhost.example", "::"}) {
    EXPECT_FALSE(is_loopback(no)) << no;
  }
}

TEST(endpoint, workers_of_one_file_listen_side_by_side) {
  EXPECT_EQ(numbered({"127.0.0.1", 7402}, "worker@3"), (endpoint{"127.0.0.1", 7405}));
  for (const char* name : {"worker", "worker@", "worker@x", "worker@99999"}) {
    EXPECT_EQ(numbered({"127.0.0.1", 7402}, name).port, 7402) << name;
  }
  EXPECT_EQ(numbered({"127.0.0.1", 0}, "worker@3").port, 0);
}

}  // namespace
}  // namespace moetier::config
