#include "eplb/migration/migration.hpp"

#include <gtest/gtest.h>

#include <set>

#include "eplb/migration/gates.hpp"
#include "eplb/planner/cold_plan.hpp"
#include "tests/eplb/random_loads.hpp"

namespace moetier::eplb {
namespace {

using table = std::vector<std::vector<std::int32_t>>;

TEST(slot_copy, counts_only_what_a_worker_lacks) {
  const slot_layout layout = *slot_layout::even(2, 4);
  const std::vector<std::int32_t> from{0, 1, 2, 3};
  const std::vector<std::int32_t> to{1, 0, 2, 1};
  const auto copies = copies_between(layout, 7, from, to);
  ASSERT_EQ(copies.size(), 3U);
  EXPECT_TRUE(copies[0].inside_worker);
  EXPECT_EQ(copies[2], (slot_copy{7, 3, 1, false}));
  EXPECT_EQ(copy_count(layout, from, to), 1U);
}

TEST(migration, brings_lost_experts_first_then_those_of_draining_workers_then_by_gain) {
  const slot_layout layout = *slot_layout::even(4, 8);
  // Worker 0 is dead, worker 1 drains. Expert 0 was on worker 0 alone, 2 on worker 1 alone.
  const table from{{0, 1, 2, 1, 3, 4, 5, 1}, {0, 0, 0, 0, 1, 2, 3, 4}};
  const table to{{0, 1, 2, 1, 3, 5, 0, 2}, {0, 0, 0, 0, 1, 3, 3, 1}};
  const std::vector<std::uint8_t> live{0, 1, 1, 1};
  const std::vector<std::uint8_t> draining{0, 1, 0, 0};
  const std::vector<double> gain{1, 50};
  const auto m = plan_migration({.layout = &layout,
                                 .from = from,
                                 .to = to,
                                 .gain = gain,
                                 .live = live,
                                 .draining = draining,
                                 .blob_bytes = 10});
  std::vector<std::tuple<std::uint32_t, std::uint32_t, copy_urgency>> order;
  for (const planned_copy& c : m.copies)
    order.emplace_back(c.copy.layer_index, c.copy.expert, c.urgency);
  ASSERT_EQ(order.size(), 5U);
  EXPECT_EQ(order[0], std::tuple(0U, 0U, copy_urgency::no_live_replica));
  EXPECT_EQ(m.copies[0].path, copy_path::disk);
  // The third worker is free in the first round: layer 1 wins more per byte.
  EXPECT_EQ(order[1], std::tuple(1U, 3U, copy_urgency::balance));
  EXPECT_EQ(order[2], std::tuple(0U, 2U, copy_urgency::sole_on_draining));
}

TEST(migration, prefers_near_sources) {
  const slot_layout layout = *slot_layout::even(3, 6);
  const std::vector<std::uint32_t> node{0, 0, 1};
  const std::vector<std::uint8_t> cached{0, 1};
  const table from{{0, 1, 2, 3, 1, 2}};
  const auto path = [&](std::vector<std::int32_t> to) {
    const table target{std::move(to)};
    const auto m = plan_migration({.layout = &layout,
                                   .from = from,
                                   .to = target,
                                   .node = node,
                                   .cached_node = cached,
                                   .blob_bytes = 1});
    return m.copies.at(0).path;
  };
  EXPECT_EQ(path({1, 1, 2, 3, 1, 2}), copy_path::same_worker);
  EXPECT_EQ(path({0, 3, 2, 3, 1, 2}), copy_path::nvlink);
  EXPECT_EQ(path({0, 1, 2, 3, 1, 0}), copy_path::host_cache);
  EXPECT_EQ(path({0, 1, 2, 4, 1, 2}), copy_path::disk);
}

TEST(migration, waits_for_a_busy_peer_rather_than_the_disk) {
  const slot_layout layout = *slot_layout::even(3, 6);
  const table from{{0, 1, 2, 3, 2, 3}};
  const table to{{0, 1, 2, 0, 2, 0}};
  const auto m = plan_migration({.layout = &layout, .from = from, .to = to, .blob_bytes = 1});
  ASSERT_EQ(m.copies.size(), 2U);
  EXPECT_EQ(m.copies[1].path, copy_path::nvlink);
  EXPECT_EQ(m.copies[1].round, 1U);
}

TEST(migration, never_gives_a_worker_two_in_a_round) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const slot_layout layout = *slot_layout::even(6, 36);
    cold_planner planner;
    table from, to;
    for (std::uint64_t l = 0; l < 5; ++l) {
      from.push_back(
          planner.plan(random_loads(load_kind::lognormal, 28, seed * 9 + l), layout)->slots);
      to.push_back(
          planner.plan(random_loads(load_kind::lognormal, 28, seed * 9 + l + 1), layout)->slots);
    }
    const auto m =
        plan_migration({.layout = &layout, .from = from, .to = to, .blob_bytes = 44'000'000});
    std::set<std::pair<std::uint32_t, std::uint32_t>> received, sent;
    std::uint64_t copies = 0;
    std::vector<std::uint32_t> in(6, 0), out(6, 0);
    for (const planned_copy& c : m.copies) {
      if (c.path == copy_path::same_worker) continue;
      ++copies;
      const std::uint32_t g = layout.worker_of(c.copy.slot);
      ++in[g];
      EXPECT_TRUE(received.insert({c.round, g}).second) << "seed " << seed;
      if (c.source < 0) continue;
      ++out[static_cast<std::size_t>(c.source)];
      EXPECT_TRUE(sent.insert({c.round, static_cast<std::uint32_t>(c.source)}).second);
    }
    std::uint64_t bytes = 0;
    for (const auto b : m.bytes) bytes += b;
    EXPECT_EQ(bytes, copies * 44'000'000);
    // No schedule ends before the busiest worker has sent and received its own, one at a time.
    const std::uint32_t busiest = std::max(*std::max_element(in.begin(), in.end()),
                                           *std::max_element(out.begin(), out.end()));
    EXPECT_GE(m.predicted_s * (1 + 1e-9), busiest * 44e6 / 150e9);
    EXPECT_LE(m.rounds, 2 * busiest);
  }
}

TEST(migration, of_equal_plans_is_nothing) {
  const slot_layout layout = *slot_layout::even(2, 4);
  const table same{{0, 1, 2, 3}};
  const auto m = plan_migration({.layout = &layout, .from = same, .to = same, .blob_bytes = 1});
  EXPECT_TRUE(m.copies.empty());
  EXPECT_EQ(m.predicted_s, 0);
}

TEST(gates, allow_copies_by_drift_and_ask_for_time_saved) {
  EXPECT_EQ(copies_allowed(0.03, false), 2U);
  EXPECT_EQ(copies_allowed(0.1, false), 8U);
  EXPECT_EQ(copies_allowed(0.3, true), 32U);
  EXPECT_TRUE(worth_its_bytes(1e-6, 44'000'000, 5e9));  // 10 ms saved, 8.8 ms of copying
  EXPECT_FALSE(worth_its_bytes(8e-7, 44'000'000, 5e9));
}

}  // namespace
}  // namespace moetier::eplb
