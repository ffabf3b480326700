#include "eplb/split/share_rounding.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <vector>

namespace moetier::eplb {
namespace {

using amounts = std::vector<std::uint64_t>;
using units = std::vector<std::uint32_t>;

units rounded(const amounts& a) {
  units u(a.size());
  round_shares(a, u);
  return u;
}

TEST(share_rounding, gives_the_documented_vectors) {
  EXPECT_EQ(rounded({99, 99, 99, 103}), (units{16220, 16220, 16220, 16876}));
  EXPECT_EQ(rounded({1, 1, 1}), (units{21846, 21845, 21845}));
  EXPECT_EQ(rounded({0, 0, 0}), (units{21846, 21845, 21845}));
  EXPECT_EQ(rounded({0, 7}), (units{0, 65536}));
  EXPECT_EQ(rounded({std::uint64_t{1} << 62, std::uint64_t{1} << 62}), (units{32768, 32768}));
}

TEST(share_rounding, always_sums_to_the_whole_and_stays_within_one_unit) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 2000; ++i) {
    amounts a(1 + random() % 40);
    for (auto& v : a) v = random() >> (8 + random() % 50);
    const double total = static_cast<double>(std::accumulate(a.begin(), a.end(), std::uint64_t{0}));
    const units u = rounded(a);
    EXPECT_EQ(std::accumulate(u.begin(), u.end(), 0U), 65536U);
    for (std::size_t j = 0; total > 0 && j < a.size(); ++j)
      EXPECT_LT(std::abs(u[j] - static_cast<double>(a[j]) / total * 65536), 1.0 + 1e-6);
  }
}

}  // namespace
}  // namespace moetier::eplb
