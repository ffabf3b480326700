#include "eplb/balance/bound.hpp"

#include <gtest/gtest.h>

#include "eplb/planner/reference_global.hpp"
#include "tests/eplb/random_loads.hpp"

namespace moetier::eplb {
namespace {

using loads = std::vector<std::uint64_t>;

TEST(lower_bound, gives_the_documented_values) {
  EXPECT_DOUBLE_EQ(lower_bound(loads{10, 1, 1, 1}, 6, 2), 6.5);
  EXPECT_DOUBLE_EQ(lower_bound(loads{10, 1, 1, 1}, 5, 5), 5);
  EXPECT_DOUBLE_EQ(lower_bound(loads{100, 1, 1, 1}, 8, 4), 25.75);
  EXPECT_DOUBLE_EQ(lower_bound(loads{100, 1, 1, 1}, 4, 4), 100);
}

// min{ T : sum max(1, ceil(w/T)) <= S } by trying every w/r as T.
double by_definition(const loads& w, std::uint32_t slots, std::uint32_t workers) {
  double total = 0;
  for (const auto v : w) total += static_cast<double>(v);
  double best = 1e300;
  for (const auto v : w) {
    for (std::uint32_t r = 1; r <= slots; ++r) {
      const double t = static_cast<double>(v) / r;
      if (t <= 0 || t >= best) continue;
      std::uint64_t needed = 0;
      for (const auto x : w)
        needed += std::max<std::uint64_t>(
            1, static_cast<std::uint64_t>(std::ceil(static_cast<double>(x) / t - 1e-12)));
      if (needed <= slots) best = t;
    }
  }
  if (total == 0) best = 0;
  return std::max(total / workers, best);
}

TEST(lower_bound, is_what_its_definition_says) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const auto w =
        random_loads(k_load_kinds[seed % 5], static_cast<std::uint32_t>(2 + seed % 9), seed);
    const auto slots = static_cast<std::uint32_t>(w.size() + seed % 6);
    const auto workers = static_cast<std::uint32_t>(1 + seed % 5);
    EXPECT_NEAR(lower_bound(w, slots, workers), by_definition(w, slots, workers), 1e-6)
        << "seed " << seed;
  }
}

TEST(lower_bound, is_below_the_fullest_worker_of_every_placement) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const auto w = random_loads(k_load_kinds[seed % 5], 24, seed);
    const slot_layout layout = *slot_layout::even(static_cast<std::uint32_t>(4 + seed % 5),
                                                  static_cast<std::uint32_t>(24 + seed % 20));
    const auto x = even_loads(w, layout, reference_global(w, layout));
    EXPECT_LE(lower_bound(w, layout.slots(), layout.workers()),
              *std::max_element(x.begin(), x.end()) * (1 + 1e-12))
        << "seed " << seed;
  }
}

}  // namespace
}  // namespace moetier::eplb
