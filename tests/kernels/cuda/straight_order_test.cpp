#include "kernels/cuda/straight_order.hpp"

#include <array>
#include <map>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

namespace moetier::kernels::cuda::straight {
namespace {

// The tables that grouping would leave for segments of so many tiles.
struct tables {
  std::vector<std::int32_t> tile_segment;
  std::vector<std::int32_t> segment_tile{0};

  explicit tables(const std::vector<std::int32_t>& tiles_of_segment) {
    for (std::size_t s = 0; s < tiles_of_segment.size(); ++s) {
      tile_segment.insert(tile_segment.end(), static_cast<std::size_t>(tiles_of_segment[s]),
                          static_cast<std::int32_t>(s));
      segment_tile.push_back(static_cast<std::int32_t>(tile_segment.size()));
    }
  }
  unit_order order(std::uint32_t fc1_pairs, std::uint32_t fc2_pairs) const {
    return {static_cast<std::uint32_t>(tile_segment.size()), fc1_pairs, fc2_pairs};
  }
  unit_place at(const unit_order& order, std::uint32_t number, std::uint32_t rank) const {
    return order.place_of(tile_segment.data(), segment_tile.data(), number, rank);
  }
};

const std::array<std::vector<std::int32_t>, 5> k_batches{
    {{1}, {2}, {1, 2, 3, 4, 5, 1}, {32}, {7, 1, 1, 8}}};
constexpr std::array<std::array<std::uint32_t, 2>, 5> k_pairs{
    {{1, 1}, {16, 28}, {23, 12}, {6, 8}, {3, 5}}};

TEST(straight_order, gives_every_tile_each_of_its_strip_pairs_once) {
  for (const auto& batch : k_batches) {
    const tables t(batch);
    for (const auto& [fc1, fc2] : k_pairs) {
      const unit_order order = t.order(fc1, fc2);
      std::map<std::tuple<unit_kind, std::uint32_t, std::uint32_t>, int> seen;
      for (std::uint32_t n = 0; n < order.numbers(); ++n)
        for (std::uint32_t rank = 0; rank < 2; ++rank)
          if (const unit_place p = t.at(order, n, rank); p.exists)
            ++seen[{p.kind, p.tile, p.strip_pair}];
      EXPECT_EQ(seen.size(), order.tiles * (fc1 + fc2));
      for (const auto& [unit, times] : seen) {
        EXPECT_EQ(times, 1);
        EXPECT_LT(std::get<1>(unit), order.tiles);
        EXPECT_LT(std::get<2>(unit), std::get<0>(unit) == unit_kind::fc1 ? fc1 : fc2);
      }
    }
  }
}

TEST(straight_order, gives_a_cluster_one_copy_of_weights_or_of_rows) {
  for (const auto& batch : k_batches) {
    const tables t(batch);
    for (const auto& [fc1, fc2] : k_pairs) {
      const unit_order order = t.order(fc1, fc2);
      for (std::uint32_t n = 0; n < order.numbers(); ++n) {
        const unit_place a = t.at(order, n, 0);
        const unit_place b = t.at(order, n, 1);
        EXPECT_EQ(a.kind, b.kind);
        EXPECT_EQ(a.sharing, b.sharing);
        if (a.sharing == unit_sharing::weights) {
          EXPECT_EQ(a.strip_pair, b.strip_pair);
          EXPECT_TRUE(a.exists && b.exists);
          EXPECT_NE(a.tile, b.tile);
          EXPECT_EQ(t.tile_segment[a.tile], t.tile_segment[b.tile]);
        } else {
          EXPECT_EQ(a.tile, b.tile);
          // The first block has work, unless neither has.
          EXPECT_NE(a.exists, a.both_idle);
          EXPECT_TRUE(b.exists ? !b.both_idle : a.exists == !b.both_idle);
        }
      }
    }
  }
}

TEST(straight_order, finishes_fc1_of_all_tiles_before_fc2_of_any) {
  const tables t({3, 1, 2});
  const unit_order order = t.order(5, 3);
  bool fc2 = false;
  for (std::uint32_t n = 0; n < order.numbers(); ++n) {
    const bool now = t.at(order, n, 0).kind == unit_kind::fc2;
    EXPECT_TRUE(now || !fc2);
    fc2 = now;
  }
  EXPECT_TRUE(fc2);
}

TEST(straight_order, takes_two_strip_pairs_through_all_tiles_before_the_next) {
  const tables t({5});
  const unit_order order = t.order(4, 2);
  std::vector<std::array<std::uint32_t, 3>> got;  // first block: tile, strip pair, sharing
  for (std::uint32_t n = 0; n < 6; ++n) {
    const unit_place p = t.at(order, n, 0);
    got.push_back({p.tile, p.strip_pair, static_cast<std::uint32_t>(p.sharing)});
  }
  const std::vector<std::array<std::uint32_t, 3>> want{{0, 0, 0}, {2, 0, 0}, {0, 1, 0},
                                                       {2, 1, 0}, {4, 0, 1}, {0, 2, 0}};
  EXPECT_EQ(got, want);
}

TEST(straight_order, knows_which_weights_other_clusters_read_too) {
  const tables t({1, 2, 3});
  const unit_order order = t.order(2, 2);
  for (std::uint32_t n = 0; n < order.numbers(); ++n) {
    const unit_place p = t.at(order, n, 0);
    EXPECT_EQ(p.reread, t.tile_segment[p.tile] == 2);
  }
}

TEST(straight_order, has_no_number_without_tiles) {
  EXPECT_EQ((unit_order{0, 16, 28}.numbers()), 0u);
  EXPECT_EQ((unit_order{3, 16, 28}.numbers()), 3u * (8 + 14));
  EXPECT_EQ((unit_order{3, 23, 1}.numbers()), 3u * (12 + 1));
}

}  // namespace
}  // namespace moetier::kernels::cuda::straight
