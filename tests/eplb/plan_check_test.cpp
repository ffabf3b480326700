#include "eplb/plan_check.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <random>

#include "eplb/planner/cold_plan.hpp"
#include "tests/eplb/random_loads.hpp"

namespace moetier::eplb {
namespace {

const std::vector<std::uint32_t> k_slots{2, 2};

plan_draft good() {
  return {3,
          k_slots,
          {{layer_id{1}, {0, 1, 2, 0}, {40000, 65536, 65536, 25536}},
           {layer_id{4}, {0, 1, 2, -1}, {}}}};
}

std::string verdict(const plan_draft& d, const plan_terms& t) {
  const auto ok = check_plan(d, t);
  return ok ? "accepted" : ok.error().text;
}

std::string changed(const std::function<void(plan_draft&)>& change) {
  plan_draft d = good();
  change(d);
  return verdict(d, {.slots_per_worker = k_slots});
}

TEST(plan_check, accepts_a_good_plan) {
  EXPECT_EQ(verdict(good(), {.slots_per_worker = k_slots}), "accepted");
}

TEST(plan_check, names_each_breach) {
  EXPECT_EQ(changed([](auto& d) { d.experts = 0; }), "placement: 0 experts; 1 to 4096 are allowed");
  EXPECT_EQ(changed([](auto& d) { d.experts = 4097; }),
            "placement: 4097 experts; 1 to 4096 are allowed");
  EXPECT_EQ(changed([](auto& d) {
              d.slots_per_worker = {2, 0};
            }),
            "placement: worker 1 has 0 slots per layer; 1 to 1024 are allowed");
  EXPECT_EQ(changed([](auto& d) { d.slots_per_worker.assign(1025, 1); }),
            "placement: 1025 workers; 1 to 1024 are allowed");
  EXPECT_EQ(changed([](auto& d) { d.slots_per_worker.assign(33, 1000); }),
            "placement: 33000 slots per layer; at most 32767");
  EXPECT_EQ(changed([](auto& d) {
              d.slots_per_worker = {2, 3};
            }),
            "placement: worker 1 gets 3 slots; it has registered 2");
  EXPECT_EQ(changed([](auto& d) {
              d.slots_per_worker = {2, 2, 2};
            }),
            "placement: it is for 3 workers; 2 have registered");
  EXPECT_EQ(changed([](auto& d) { d.layers[1].layer = layer_id{1}; }),
            "placement: layer 1 follows layer 1; layers must rise");
  EXPECT_EQ(changed([](auto& d) { d.layers[0].slots.push_back(0); }),
            "placement: layer 1 lists 5 slots; the workers have 4");
  EXPECT_EQ(changed([](auto& d) { d.layers[0].slots[3] = 3; }),
            "placement: layer 1 slot 3 names expert 3; allowed: -1 (empty) or 0 to 2");
  EXPECT_EQ(changed([](auto& d) { d.layers[0].slots[3] = -2; }),
            "placement: layer 1 slot 3 names expert -2; allowed: -1 (empty) or 0 to 2");
  EXPECT_EQ(changed([](auto& d) { d.layers[0].slots[3] = 2; }),
            "placement: layer 1 worker 1 holds expert 2 twice");
  EXPECT_EQ(changed([](auto& d) { d.layers[1].slots[1] = -1; }),
            "placement: layer 4 has no slot for expert 1");
  EXPECT_EQ(changed([](auto& d) { d.layers[0].units.pop_back(); }),
            "placement: layer 1 has shares for 3 slots; the workers have 4");
  EXPECT_EQ(changed([](auto& d) { --d.layers[0].units[0]; }),
            "placement: layer 1 expert 0: shares sum to 65535; they must sum to 65536");
  EXPECT_EQ(changed([](auto& d) {
              d.layers[1].units = {65536, 65536, 65536, 1};
            }),
            "placement: layer 4 slot 3 is empty but has a share");
  EXPECT_EQ(changed([](auto& d) { d.layers.resize(1025, d.layers[0]); }),
            "placement: 1025 layers; at most 1024");
}

TEST(plan_check, judges_by_the_tier_that_the_plan_is_for) {
  const std::vector<std::uint8_t> first_dead{0, 1};
  const std::vector<std::uint8_t> second_drains{0, 1};
  plan_draft d = good();
  d.layers.pop_back();
  EXPECT_EQ(verdict(d, {.slots_per_worker = k_slots, .live = first_dead}),
            "placement: layer 1 expert 1 has no live slot whose bytes are there");
  EXPECT_EQ(verdict(d, {.slots_per_worker = k_slots, .draining = second_drains}),
            "placement: layer 1 slot 2 has a share, but its worker drains");
  const std::vector<std::uint8_t> filled{1, 1, 1, 0};
  EXPECT_EQ(verdict(d, {.slots_per_worker = k_slots, .filled = filled}),
            "placement: layer 1 slot 3 has a share, but nobody brings its bytes");
  const std::vector<std::uint64_t> loads{1, 2, (std::uint64_t{1} << 62)};
  EXPECT_EQ(verdict(d, {.slots_per_worker = k_slots, .loads = loads}),
            "placement: layer 1 expert 2 has load 4611686018427387904; at most "
            "4611686018427387903 over 2 workers");
  d = {2, {1, 2}, {{layer_id{0}, {0, 1, 0}, {0, 65536, 65536}}}};
  const std::vector<std::uint32_t> uneven{1, 2};
  EXPECT_EQ(verdict(d, {.slots_per_worker = uneven}),
            "placement: 3 slots over 2 workers are uneven, which backend and carrier have not "
            "declared");
  EXPECT_EQ(verdict(d, {.slots_per_worker = uneven, .uneven_allowed = true}), "accepted");
  d.layers[0].units = {1, 65536, 65535};
  EXPECT_EQ(verdict(d, {.slots_per_worker = uneven, .live = first_dead, .uneven_allowed = true}),
            "placement: layer 0 slot 0 has a share, but its worker is dead");
}

TEST(plan_check, counts_wishes_that_go_unmet) {
  const std::vector<std::uint32_t> node{0, 0};
  const auto u = unmet(good(), {.min_replicas = 2, .node_of_worker = node});
  EXPECT_EQ(u.experts_below_min_replicas, 5U);
  EXPECT_EQ(u.experts_on_one_node, 1U);
  const std::vector<std::uint32_t> apart{0, 1};
  EXPECT_EQ(unmet(good(), {.min_replicas = 1, .node_of_worker = apart}).experts_on_one_node, 0U);
}

// One rule of a planned layer is broken at a time; the refusal must name that rule.
TEST(plan_check, names_the_reason_for_every_mutated_plan) {
  const int rounds = std::getenv("MOETIER_FULL") == nullptr ? 3000 : 200'000;
  std::mt19937_64 random(11);
  cold_planner planner;
  for (int i = 0; i < rounds; ++i) {
    const auto workers = static_cast<std::uint32_t>(2 + random() % 6);
    const auto experts = static_cast<std::uint32_t>(3 + random() % 20);
    const std::uint32_t slots = (experts + workers) / workers * workers + workers;
    const slot_layout layout = *slot_layout::even(workers, slots);
    const auto plan = *planner.plan(random_loads(load_kind::lognormal, experts, random()), layout);
    plan_draft d{experts,
                 std::vector<std::uint32_t>(workers, slots / workers),
                 {{layer_id{3}, plan.slots, plan.units}}};
    const std::vector<std::uint32_t> registered = d.slots_per_worker;
    ASSERT_EQ(verdict(d, {.slots_per_worker = registered}), "accepted");
    draft_layer& l = d.layers[0];
    const std::size_t s = random() % slots;
    std::string expected;
    std::vector<std::uint8_t> live;
    switch (random() % 7) {
      case 0:
        l.slots[s] = static_cast<std::int32_t>(experts + random() % 1000);
        expected = "names expert";
        break;
      case 1: {  // a neighbour on the same worker again
        const std::size_t other = s % (slots / workers) == 0 ? s + 1 : s - 1;
        if (l.slots[other] < 0) continue;
        l.slots[s] = l.slots[other];
        expected = "twice";
        break;
      }
      case 2:
        l.units[s] += 1 + static_cast<std::uint32_t>(random() % 65536);
        expected = l.slots[s] < 0 ? "is empty but has a share" : "shares sum to";
        break;
      case 3: {
        const std::int32_t gone = l.slots[s];
        if (gone < 0) continue;
        std::replace(l.slots.begin(), l.slots.end(), gone, -1);
        expected = "has no slot for expert";
        break;
      }
      case 4:
        live.assign(workers, 1);
        live[s % workers] = 0;
        expected = "dead|has no live slot";
        break;
      case 5:
        ++d.slots_per_worker[s % workers];
        expected = "it has registered";
        break;
      default:
        l.slots.pop_back();
        expected = "lists";
        break;
    }
    const std::string said = verdict(d, {.slots_per_worker = registered, .live = live});
    const std::size_t bar = expected.find('|');
    const bool named =
        said.find(expected.substr(0, bar)) != std::string::npos ||
        (bar != std::string::npos && said.find(expected.substr(bar + 1)) != std::string::npos);
    EXPECT_TRUE(named) << "round " << i << ": " << said << " for " << expected;
  }
}

}  // namespace
}  // namespace moetier::eplb
