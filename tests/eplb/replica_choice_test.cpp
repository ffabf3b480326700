#include "eplb/replica_choice.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

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

TEST(replica_choice, hashes_the_documented_vectors) {
  const auto hash = [](std::uint64_t generation, std::uint16_t layer, std::uint32_t expert,
                       std::uint16_t source, std::uint64_t step, std::uint64_t row) {
    return replica_hash({generation_number{generation}, layer_id{layer}, source_id{source}, step},
                        expert, row);
  };
  EXPECT_EQ(hash(1, 0, 0, 0, 0, 0), 45450U);
  EXPECT_EQ(hash(1, 3, 17, 2, 5, 9), 42702U);
  EXPECT_EQ(hash(2, 3, 17, 2, 5, 9), 47874U);
  EXPECT_EQ(hash(1, 3, 17, 2, 5 + (1U << 24), 9 + (1U << 24)), 42702U);  // low 24 bits
}

TEST(replica_choice, by_hash_stays_within_three_sigma_of_the_shares) {
  fixture f;
  const shares s = *shares::from_units(f.p, {{10000, 65536, 30000, 0, 25536}}, {});
  constexpr std::uint32_t n = 1U << 20;
  const std::vector<std::int32_t> ids(n, 0);
  std::vector<std::int32_t> dense(n);
  const choice_names names{generation_number{3}, layer_id{0}, source_id{1}, 6};
  ASSERT_EQ(choose_by_hash(f.p, s, 0, names, 0, 1, ids, dense), -1);
  for (const std::size_t d : {0U, 2U, 4U}) {
    const double share = s.units(0)[d] / 65536.0;
    const auto got = std::count(dense.begin(), dense.end(), static_cast<std::int32_t>(d));
    EXPECT_LT(std::abs(static_cast<double>(got) - n * share),
              3 * std::sqrt(n * share * (1 - share)))
        << "slot " << d;
  }
}

TEST(replica_choice, by_hash_does_not_depend_on_the_batch) {
  fixture f;
  const shares s = shares::even(f.p, {true, true, true}, {});
  const choice_names names{generation_number{3}, layer_id{0}, source_id{1}, 4};
  const std::vector<std::int32_t> ids{0, 1, 1, 0, 0, 1, 1, 0};
  std::vector<std::int32_t> whole(8), part(4);
  choose_by_hash(f.p, s, 0, names, 10, 2, ids, whole);
  choose_by_hash(f.p, s, 0, names, 12, 2, std::span(ids).subspan(4), part);
  EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + 4));
}

TEST(replica_choice, as_the_reference_goes_round_robin_in_blocks) {
  fixture f;
  const std::vector<std::int32_t> ids(1030, 0);  // expert 0 in slots 0, 2, 4
  std::vector<std::int32_t> dense(ids.size());
  choose_as_reference(f.p, 0, source_id{1}, ids, dense, f.counts);
  EXPECT_EQ(dense[0], 2);
  EXPECT_EQ(dense[1], 4);
  EXPECT_EQ(dense[2], 0);
  EXPECT_EQ(dense[1024], 4);  // the count starts again, one further
  EXPECT_EQ(choose_as_reference(f.p, 0, source_id{0}, std::vector<std::int32_t>{-1, 1},
                                std::span(dense).first(2), f.counts),
            -1);
  EXPECT_EQ(dense[0], -1);
}

}  // namespace
}  // namespace moetier::eplb
