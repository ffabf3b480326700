// The bench's routing: the vectors that the peers' script is held to as well, and what follows from
// a routing.
#include "actors/cli/device_routing.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>

#include "actors/cli/device_rows.hpp"

namespace moetier::cli {
namespace {

TEST(device_routing, is_the_one_of_the_vectors) {
  std::ifstream file(MOETIER_SOURCE_DIR "/tests/bench/peers/routing_vectors.txt");
  std::string line;
  std::size_t compared = 0;
  while (std::getline(file, line)) {
    if (line.starts_with("#")) continue;
    std::istringstream words(line);
    std::string shape, kind;
    routed_problem p;
    std::uint64_t checksum = 0;
    words >> shape >> p.rows >> kind >> p.seed >> p.routing >> std::hex >> checksum;
    ASSERT_TRUE(words) << line;
    for (const device_shape& s : device_shapes()) {
      if (s.name != shape) continue;
      p.slots = s.slots;
      p.k = s.k;
      p.kind = kind == "equal" ? routing_kind::equal : routing_kind::random;
      EXPECT_EQ(routing_checksum(route_bench_rows(p).slot_ids), checksum) << line;
      ++compared;
    }
  }
  EXPECT_EQ(compared, 11U);
}

TEST(device_routing, gives_every_row_k_slots_and_weights_near_one) {
  const routed_rows routed = route_bench_rows({.slots = 9, .k = 9, .rows = 50});
  ASSERT_EQ(routed.slot_ids.size(), 450U);
  for (std::size_t r = 0; r < 50; ++r) {
    const auto row = routed.slot_ids.begin() + static_cast<std::ptrdiff_t>(r * 9);
    EXPECT_EQ(std::set(row, row + 9).size(), 9U);
    EXPECT_EQ(*std::min_element(row, row + 9), 0);
    EXPECT_EQ(*std::max_element(row, row + 9), 8);
  }
  for (const float w : routed.weights) {
    EXPECT_GE(w, 0.5F);
    EXPECT_LT(w, 1.5F);
  }
}

TEST(device_routing, routings_of_a_row_differ) {
  const auto ids = [](std::uint32_t routing) {
    return route_bench_rows({.slots = 32, .k = 1, .rows = 64, .routing = routing}).slot_ids;
  };
  EXPECT_NE(ids(0), ids(1));
  EXPECT_EQ(ids(1), ids(1));
}

TEST(device_routing, counts_active_slots_and_padded_rows) {
  const std::vector<std::int32_t> ids{5, -1, 2, 5, 5, 5, 5, 5, 5, 5, 5, 7};
  EXPECT_EQ(active_slots(ids), (std::vector<std::uint32_t>{2, 5, 7}));
  EXPECT_EQ(padded_rows(ids), 8U + 16U + 8U);
  EXPECT_EQ(padded_rows({}), 0U);
}

}  // namespace
}  // namespace moetier::cli
