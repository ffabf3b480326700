#include "eplb/planner/window_wrap.hpp"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <numeric>
#include <set>

#include "eplb/limits.hpp"
#include "eplb/planner/reference_global.hpp"
#include "schemas/base/limits.hpp"
#include "tests/eplb/random_loads.hpp"

namespace moetier::eplb {
namespace {

__extension__ using wide = unsigned __int128;
using loads = std::vector<std::uint64_t>;
using experts = std::vector<std::int32_t>;

TEST(window_wrap, gives_the_documented_vectors) {
  const loads w{10, 1, 1, 1};
  const auto two = window_wrap(w, *slot_layout::even(2, 6));
  ASSERT_TRUE(two.has_value());
  EXPECT_EQ(two->slots, (experts{0, 2, 3, 0, 1, 2}));
  EXPECT_EQ(two->amounts, (loads{9, 2, 2, 11, 2, 0}));  // of 20: 9/20, 11/20; the second 2 idles

  const auto four = window_wrap(loads{100, 1, 1, 1}, *slot_layout::even(4, 8));
  ASSERT_TRUE(four.has_value());
  EXPECT_EQ(four->slots, (experts{0, 3, 0, 2, 0, 1, 0, 1}));
  EXPECT_EQ(four->amounts, (loads{99, 4, 99, 4, 99, 4, 103, 0}));
  EXPECT_EQ(units_of(four->slots, four->amounts, 4),
            (std::vector<std::uint32_t>{16220, 65536, 16220, 65536, 16220, 65536, 16876, 0}));
}

// Nothing of expert 3 is left for the next worker, so its slot is for the hottest.
TEST(window_wrap, leaves_no_empty_rest_of_an_expert_behind) {
  const auto wrapped = window_wrap(loads{10, 10, 5, 5}, *slot_layout::even(3, 6));
  ASSERT_TRUE(wrapped.has_value());
  EXPECT_EQ(wrapped->slots, (experts{2, 3, 0, 1, 0, 1}));
  EXPECT_EQ(wrapped->amounts, (loads{15, 15, 30, 0, 0, 30}));
}

void expect_exact(const loads& w, const slot_layout& layout, const std::string& where) {
  const auto wrapped = window_wrap(w, layout);
  ASSERT_TRUE(wrapped.has_value()) << where;
  const bool none = std::all_of(w.begin(), w.end(), [](std::uint64_t v) { return v == 0; });
  wide mean = 0;
  for (const auto v : w) mean += none ? 1 : v;
  std::vector<wide> by_expert(w.size(), 0);
  std::uint32_t split = 0;
  for (std::uint32_t g = 0; g < layout.workers(); ++g) {
    wide sum = 0;
    std::set<std::int32_t> own;
    for (std::uint32_t s = layout.first(g); s < layout.first(g) + layout.count(g); ++s) {
      sum += wrapped->amounts[s];
      if (wrapped->slots[s] < 0) continue;
      EXPECT_TRUE(own.insert(wrapped->slots[s]).second) << where;
      by_expert[static_cast<std::size_t>(wrapped->slots[s])] += wrapped->amounts[s];
    }
    EXPECT_TRUE(sum == mean) << where << " worker " << g;
  }
  const auto t = tables_of(wrapped->slots, static_cast<std::uint32_t>(w.size()));
  for (std::uint32_t e = 0; e < w.size(); ++e) {
    EXPECT_LT(t.offset[e], t.offset[e + 1]) << where;
    EXPECT_TRUE(by_expert[e] == wide{none ? 1 : w[e]} * layout.workers()) << where;
    std::uint32_t serving = 0;
    for (std::uint32_t i = t.offset[e]; i < t.offset[e + 1]; ++i)
      serving += wrapped->amounts[t.slots[i]] > 0 ? 1 : 0;
    split += serving > 1 ? serving - 1 : 0;
  }
  EXPECT_LE(split, layout.workers() - 1) << where;
}

TEST(window_wrap, gives_every_worker_exactly_the_mean) {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    const auto count = static_cast<std::uint32_t>(1 + seed % 40);
    const auto workers = static_cast<std::uint32_t>(1 + seed % 9);
    std::uint32_t slots = count + workers - 1 + static_cast<std::uint32_t>(seed % 5);
    const auto w = random_loads(k_load_kinds[seed % 5], count, seed);
    expect_exact(w, *slot_layout::even(workers, std::max(slots, workers)),
                 fmt::format("seed {}", seed));
  }
}

TEST(window_wrap, holds_at_the_limits_without_overflow) {
  const std::uint32_t workers = 1024;
  const loads w(4096, k_load_max / workers);
  expect_exact(w, *slot_layout::even(workers, 4096 + workers), "all at the limit");
  loads one(4096, 0);
  one[7] = k_load_max / workers;
  expect_exact(one, *slot_layout::even(workers, 4096 + workers), "one at the limit");
}

TEST(window_wrap, says_where_it_does_not_apply) {
  EXPECT_FALSE(window_wrap(loads(4, 1), *slot_layout::even(2, 4)).has_value());
  EXPECT_TRUE(window_wrap(loads(4, 1), *slot_layout::even(2, 5)).has_value());
  // Uneven slots count only up to one above the least.
  const std::vector<std::uint32_t> uneven{1, 1, 8};
  EXPECT_FALSE(window_wrap(loads(4, 1), *slot_layout::make(uneven)).has_value());
}

TEST(window_wrap, fills_slots_cut_off_by_unevenness) {
  const std::vector<std::uint32_t> uneven{2, 2, 4};
  const auto wrapped = window_wrap(loads{8, 4, 2, 1}, *slot_layout::make(uneven));
  ASSERT_TRUE(wrapped.has_value());
  EXPECT_EQ(std::count(wrapped->slots.begin(), wrapped->slots.end(), -1), 0);
  expect_exact({8, 4, 2, 1}, *slot_layout::make(uneven), "uneven");
}

TEST(window_wrap, gives_single_replicas_spare_slots_first_for_survival) {
  const loads w{100, 50, 3, 2, 1, 1};
  const slot_layout layout = *slot_layout::even(3, 12);
  const auto by_load = window_wrap(w, layout, spare_fill::load);
  const auto survival = window_wrap(w, layout, spare_fill::survival);
  const auto singles = [](const wrapped_layer& l) {
    const auto t = tables_of(l.slots, 6);
    int count = 0;
    for (std::uint32_t e = 0; e < 6; ++e) count += t.offset[e + 1] - t.offset[e] == 1 ? 1 : 0;
    return count;
  };
  EXPECT_LT(singles(*survival), singles(*by_load));
}

TEST(window_wrap, same_loads_give_the_same_plan) {
  const auto w = random_loads(load_kind::lognormal, 64, 5);
  const slot_layout layout = *slot_layout::even(8, 72);
  EXPECT_EQ(window_wrap(w, layout)->slots, window_wrap(w, layout)->slots);
}

}  // namespace
}  // namespace moetier::eplb
