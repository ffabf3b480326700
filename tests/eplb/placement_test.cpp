#include "eplb/placement.hpp"

#include <random>

#include <gtest/gtest.h>

#include "tests/eplb/small_placement.hpp"

namespace moetier::eplb {
namespace {

std::vector<std::int32_t> slots_of(std::uint32_t experts, const std::vector<std::uint32_t>& slots) {
  const auto p = default_placement(experts, layers_of(1), spans_of(slots));
  EXPECT_TRUE(p.has_value()) << (p ? "" : p.error().text);
  return p ? p->layers()[0].experts : std::vector<std::int32_t>{};
}

std::string refusal(std::uint32_t experts, std::vector<worker_span> spans,
                    std::vector<layer_slots> layers) {
  const auto p = placement::make(experts, std::move(spans), std::move(layers));
  return p ? "accepted" : p.error().text;
}

TEST(placement, both_directions_of_the_map_are_inverse_for_random_placements) {
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    std::mt19937 engine(seed);
    const auto random = [&] { return static_cast<std::uint32_t>(engine()); };
    const std::uint32_t experts = 1 + random() % 40;
    const std::uint32_t workers = 1 + random() % 6;
    const std::uint32_t slots = std::min(experts, (experts + workers - 1) / workers + random() % 3);
    const auto p = default_placement(experts, layers_of(3),
                                     spans_of(std::vector<std::uint32_t>(workers, slots)));
    if (!p) continue;  // too few slots to cover all: another test's matter
    std::size_t found = 0;
    for (std::uint32_t e = 0; e < experts; ++e) {
      for (const std::uint32_t d : p->replicas(1, e)) {
        ASSERT_EQ(p->layers()[1].experts[d], static_cast<std::int32_t>(e)) << "seed " << seed;
        ++found;
      }
    }
    ASSERT_EQ(found, p->dense_slots()) << "seed " << seed;
    const auto copy = placement::from_canonical(p->canonical_bytes());
    ASSERT_TRUE(copy.has_value());
    ASSERT_EQ(*copy, *p);
  }
}

TEST(placement, global_slots_follow_the_workers_first_slot_over_holes) {
  auto spans = spans_of({2, 2});
  spans[1].first_slot = 10;
  const auto p = placement::make(4, spans, {{layer_id{5}, {0, 1, 2, 3}}});
  ASSERT_TRUE(p.has_value());
  EXPECT_EQ(p->global_slot(1), slot_id{1});
  EXPECT_EQ(p->global_slot(2), slot_id{10});
  EXPECT_EQ(p->span_of(3), 1U);
  EXPECT_EQ(p->first_dense(1), 2U);
  EXPECT_EQ(p->index_of(layer_id{5}), 0);
  EXPECT_EQ(p->index_of(layer_id{4}), -1);
}

TEST(placement, refuses_each_breach_with_its_place) {
  EXPECT_EQ(refusal(2, spans_of({1, 1}), {{layer_id{0}, {0, 0}}}),
            "placement: layer 0 has no slot for expert 1");
  EXPECT_EQ(refusal(2, spans_of({2, 1}), {{layer_id{3}, {0, 0, 1}}}),
            "placement: layer 3 worker 0 holds expert 0 twice");
  EXPECT_EQ(refusal(2, spans_of({1, 1}), {{layer_id{0}, {0, 2}}}),
            "placement: layer 0 slot 1 names expert 2; allowed: -1 (empty) or 0 to 1");
  EXPECT_EQ(refusal(2, spans_of({1, 1}), {{layer_id{0}, {0}}}),
            "placement: layer 0 lists 1 slots; the workers have 2");
  EXPECT_EQ(refusal(0, spans_of({1}), {}), "placement: 0 experts; 1 to 4096 are allowed");
  EXPECT_EQ(refusal(1, {}, {}), "placement: 0 workers; 1 to 64 are allowed");
  EXPECT_EQ(refusal(1, spans_of({1, 0}), {}),
            "placement: worker 1 has 0 slots per layer; 1 to 1024 are allowed");
  auto overlapping = spans_of({2, 2});
  overlapping[1].first_slot = 1;
  EXPECT_EQ(refusal(1, overlapping, {}),
            "placement: worker 1 starts at slot 1, inside the slots before it");
  auto falling = spans_of({1, 1});
  falling[1].worker = worker_id{0};
  EXPECT_EQ(refusal(1, falling, {}), "placement: worker 0 follows worker 0; ids must rise");
  EXPECT_EQ(refusal(1, spans_of({1}), {{layer_id{1}, {0}}, {layer_id{1}, {0}}}),
            "placement: layer 1 follows layer 1; layers must rise");
}

TEST(placement, mutated_canonical_bytes_are_refused_or_legal_but_never_crash) {
  const auto p = default_placement(7, layers_of(2), spans_of({3, 3, 3}));
  ASSERT_TRUE(p.has_value());
  const auto good = p->canonical_bytes();
  for (std::size_t i = 0; i < good.size(); ++i) {
    for (const int flip : {1, 0x80, 0xff}) {
      auto bad = good;
      bad[i] ^= static_cast<std::byte>(flip);
      const auto read = placement::from_canonical(bad);
      if (read) {
        EXPECT_EQ(read->canonical_bytes(), bad);
      }
    }
    EXPECT_FALSE(placement::from_canonical(std::span(good).first(i)).has_value());
  }
}

TEST(default_placement, gives_the_documented_vectors) {
  using v = std::vector<std::int32_t>;
  EXPECT_EQ(slots_of(8, {3, 3, 3, 3}), (v{0, 1, 2, 2, 3, 4, 4, 5, 6, 6, 7, 0}));
  EXPECT_EQ(slots_of(4, std::vector<std::uint32_t>(8, 1)), (v{0, 0, 1, 1, 2, 2, 3, 3}));
  const auto wide = slots_of(256, std::vector<std::uint32_t>(32, 9));
  EXPECT_EQ(v(wide.begin(), wide.begin() + 9), (v{0, 1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(v(wide.begin() + 9, wide.begin() + 18), (v{8, 9, 10, 11, 12, 13, 14, 15, 16}));
  EXPECT_EQ(slots_of(10, {3, 3, 3, 3}).size(), 12U);
}

TEST(default_placement, names_the_experts_it_would_lose_and_the_remedy) {
  const auto lost = default_placement(10, layers_of(1), spans_of({2, 2, 2, 2}));
  ASSERT_FALSE(lost.has_value());
  EXPECT_EQ(lost.error().text,
            "10 experts cannot be divided over 4 workers: 8 slots per layer are too few; give each "
            "worker at least 3 slots");
  const auto uneven = default_placement(10, layers_of(1), spans_of({2, 2, 2, 5}));
  ASSERT_FALSE(uneven.has_value());
  EXPECT_EQ(
      uneven.error().text,
      "placement: the default placement leaves out 1 experts (4); 3 slots per worker cover all");
}

TEST(default_placement, divides_contiguously_when_slots_equal_experts) {
  using v = std::vector<std::int32_t>;
  EXPECT_EQ(slots_of(7, {3, 2, 2}), (v{0, 1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(slots_of(2, {4}), (v{0, 1, -1, -1}));
}

TEST(even_partition, gives_the_documented_vectors) {
  EXPECT_EQ(even_partition(256, 6), (std::vector<std::uint32_t>{43, 43, 43, 43, 42, 42}));
  EXPECT_EQ(even_partition(10, 4), (std::vector<std::uint32_t>{3, 3, 2, 2}));
  EXPECT_EQ(even_partition(7, 3), (std::vector<std::uint32_t>{3, 2, 2}));
}

}  // namespace
}  // namespace moetier::eplb
