#include "workers/store/adapter_set.hpp"

#include <gtest/gtest.h>

namespace moetier::workers {
namespace {

TEST(adapter_set, replaces_and_removes_by_id_and_leaves_the_earlier_set_alone) {
  const auto one = std::make_shared<const adapter>();
  const auto two = std::make_shared<const adapter>();
  const adapter_set first = adapter_set().with(9, one).with(3, two);
  EXPECT_EQ(first.index_of(3), 0);
  EXPECT_EQ(first.index_of(9), 1);
  EXPECT_EQ(first.index_of(4), -1);
  EXPECT_EQ(first.index_of(-1), -1);
  const adapter_set again = first.with(9, two);
  EXPECT_EQ(again.entries.size(), 2u);
  EXPECT_EQ(again.entries[1].content, two);
  EXPECT_EQ(first.entries[1].content, one);
  const adapter_set less = again.with(3, nullptr);
  EXPECT_EQ(less.index_of(9), 0);
  EXPECT_EQ(less.index_of(3), -1);
}

TEST(adapter, finds_only_the_experts_that_it_touches) {
  adapter a;
  for (const auto& [layer, expert] : {std::pair{0u, 4u}, {1u, 0u}, {1u, 7u}}) {
    a.experts.push_back({.layer_index = layer, .expert = expert, .matrices = {}});
    a.experts.back().matrices.rank = 10 * layer + expert;
  }
  ASSERT_NE(a.find(1, 7), nullptr);
  EXPECT_EQ(a.find(1, 7)->rank, 17u);
  EXPECT_EQ(a.find(0, 4)->rank, 4u);
  EXPECT_EQ(a.find(0, 0), nullptr);
  EXPECT_EQ(a.find(1, 4), nullptr);
  EXPECT_EQ(a.find(2, 0), nullptr);
}

}  // namespace
}  // namespace moetier::workers
