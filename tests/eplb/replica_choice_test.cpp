#include "eplb/replica_choice.hpp"

#include <gtest/gtest.h>

#include "schemas/base/mix.hpp"
#include "tests/eplb/small_placement.hpp"

namespace moetier::eplb {
namespace {

struct fixture {
  placement p = *placement::make(2, spans_of({2, 2, 1}), {{layer_id{0}, {0, 1, 0, 1, 0}}});
  std::vector<std::uint32_t> counts = std::vector<std::uint32_t>(4);

  std::vector<std::int32_t> choose(const shares& s, const std::vector<std::int32_t>& ids,
                                   choice_key key) {
    std::vector<std::int32_t> dense(ids.size());
    EXPECT_EQ(choose_stratified(p, s, 0, key, ids, dense, counts), -1);
    return dense;
  }
};

TEST(mix, gives_the_published_first_value) { EXPECT_EQ(mix(0), 0xE220A8397B1DCDAFull); }

TEST(replica_choice, gives_every_replica_its_share_rounded_down_or_up) {
  fixture f;
  for (std::uint32_t n = 1; n < 300; ++n) {
    const shares s = *shares::from_units(f.p, {{10000, 65536, 30000, 0, 25536}}, {});
    const std::vector<std::int32_t> ids(n, 0);
    const auto dense =
        f.choose(s, ids, {generation_number{n}, layer_id{0}, source_id{3}, n * 7, n % 5});
    std::vector<std::uint32_t> got(5, 0);
    for (const std::int32_t d : dense) ++got[static_cast<std::size_t>(d)];
    for (const std::size_t d : {0U, 2U, 4U}) {
      const double fair = double(n) * double(s.units(0)[d]) / 65536.0;
      EXPECT_LE(std::abs(double(got[d]) - fair), 1.0) << "n " << n << " slot " << d;
    }
    EXPECT_EQ(got[1] + got[3], 0U);
  }
}

TEST(replica_choice, never_picks_a_replica_without_share_and_names_a_lost_expert) {
  fixture f;
  const shares s = shares::even(f.p, {false, true, false}, {});
  const auto dense =
      f.choose(s, {0, 1, -1, 0}, {generation_number{1}, layer_id{0}, source_id{0}, 0, 0});
  EXPECT_EQ(dense, (std::vector<std::int32_t>{2, 3, -1, 2}));
  const shares none = shares::even(f.p, {false, false, true}, {});
  std::vector<std::int32_t> out(3);
  EXPECT_EQ(choose_stratified(f.p, none, 0, {generation_number{1}, layer_id{0}, source_id{0}, 0, 0},
                              std::vector<std::int32_t>{0, 1, 0}, out, f.counts),
            1);
}

TEST(replica_choice, is_a_pure_function_of_its_names) {
  fixture f;
  const shares s = shares::even(f.p, {true, true, true}, {});
  const std::vector<std::int32_t> ids{0, 1, 0, 0, 1, 1, 0};
  const choice_key key{generation_number{4}, layer_id{0}, source_id{2}, 9, 1};
  const auto first = f.choose(s, ids, key);
  EXPECT_EQ(f.choose(s, ids, key), first);
  bool differs = false;
  for (std::uint64_t step = 10; step < 30; ++step) {
    choice_key other = key;
    other.step = step;
    differs = differs || f.choose(s, ids, other) != first;
  }
  EXPECT_TRUE(differs);
}

}  // namespace
}  // namespace moetier::eplb
