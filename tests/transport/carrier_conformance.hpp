#pragma once
// What every carrier promises, asked of each of them: the same exchanges, refusals and losses must
// look the same whatever moves the bytes. Tests of this suite lie in conformance_*_test.cpp; it is
// made for each carrier in conformance_rows_test.cpp. Thread: owner.

#include <gtest/gtest.h>

#include "tests/transport/tier_of_halves.hpp"

namespace moetier::transport {

struct carrier_case {
  const char* name;
  bool checksum;
};

class conformance : public testing::TestWithParam<carrier_case> {
 protected:
  std::unique_ptr<Communication> open() {
    auto carrier = open_carrier(
        GetParam().name,
        {.listen = "127.0.0.1", .checksum_payload = GetParam().checksum, .allow_tcp = true});
    EXPECT_TRUE(carrier) << carrier.error().text;
    return std::move(*carrier);
  }

  tier_of_halves tier{open()};
};

}  // namespace moetier::transport
