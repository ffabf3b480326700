// What people are shown of a tier, from the core's events to the documents.

#include "coordinator/rpc/tier_document.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "coordinator/rpc/layer_load.hpp"
#include "tests/coordinator/core_bench.hpp"

namespace moetier::coordinator {
namespace {

using nlohmann::json;

// Two workers with all four experts each (slots 0..3, expert = slot on a; b begins at another one).
// Rows of both layers by local slot.
bench served(const std::vector<std::uint64_t>& of_a, const std::vector<std::uint64_t>& of_b) {
  bench b;
  b.serve();
  const auto report = [&b](const std::string& name, const std::vector<std::uint64_t>& counts) {
    const tier_view v = b.view();
    b.say(name, control::load_report{.incarnation = b.processes.at(name).hello.incarnation,
                                     .generation = v.generation,
                                     .plan = v.plan,
                                     .rows_total = 100,
                                     .calls_total = 10,
                                     .counts = counts});
  };
  report("a", of_a);
  report("b", of_b);
  return b;
}

TEST(layer_load, sums_rows_by_worker_and_compares_the_mean_with_the_fullest) {
  const bench b = served({10, 20, 0, 0, 1, 1, 1, 1}, {0, 0, 5, 5, 1, 1, 1, 1});
  const auto loads = layer_loads(b.view());
  ASSERT_EQ(loads.size(), 2u);
  EXPECT_EQ(loads[0].rows, (std::vector<std::uint64_t>{30, 10}));
  EXPECT_EQ(loads[0].total(), 40u);
  EXPECT_DOUBLE_EQ(loads[0].balancedness, 20.0 / 30.0);
  EXPECT_EQ(loads[1].rows, (std::vector<std::uint64_t>{4, 4}));
  EXPECT_DOUBLE_EQ(loads[1].balancedness, 1.0);
}

TEST(layer_load, counts_no_lost_worker_into_the_mean) {
  bench b = served({10, 20, 0, 0, 1, 1, 1, 1}, {0, 0, 5, 5, 1, 1, 1, 1});
  b.lose_link("a");
  const auto loads = layer_loads(b.view());
  EXPECT_EQ(loads[0].rows[1], 10u);
  EXPECT_DOUBLE_EQ(loads[0].balancedness, 1.0);
}

TEST(expert_loads, add_up_an_experts_replicas_and_begin_with_the_hottest) {
  const bench b = served({10, 20, 0, 0, 0, 0, 0, 0}, {7, 7, 5, 5, 0, 0, 0, 0});
  const tier_view view = b.view();
  const auto experts = expert_loads(view, 0);
  ASSERT_EQ(experts.size(), 4u);
  std::uint64_t before = ~0ull;
  std::uint64_t total = 0;
  for (const expert_load& e : experts) {
    EXPECT_LE(e.rows, before);
    before = e.rows;
    total += e.rows;
    ASSERT_EQ(e.places.size(), 2u);
    EXPECT_EQ(e.rows, e.places[0].rows + e.places[1].rows);
    for (const expert_place& at : e.places) {
      const auto& placed = view.snapshot->placement;
      EXPECT_EQ(placed.layers()[0].experts[placed.first_dense(at.worker) + at.slot],
                static_cast<std::int32_t>(e.expert));
    }
  }
  EXPECT_EQ(total, 54u);
}

TEST(tier_document, tells_load_sessions_and_events_of_a_tier_that_serves) {
  bench b = served({10, 20, 0, 0, 1, 1, 1, 1}, {0, 0, 5, 5, 1, 1, 1, 1});
  const session_grant g = b.open();
  b.step(renew_session{g.session, incarnation_id(7001), {5, 70, generation_number(1)}});
  b.now += 200 * k_millisecond;  // a longer silence of the workers would be an event too
  b.step(time_passed{});
  const json status = json::parse(status_document(b.view()));
  EXPECT_EQ(status["schema"], "moetier.status/1");
  EXPECT_EQ(status["load"][0]["rows"], (json{30, 10}));
  EXPECT_EQ(status["load"][0]["layer"], 0);
  EXPECT_EQ(status["sessions"][0]["token_layers"], 70);
  EXPECT_EQ(status["sessions"][0]["calls"], 5);
  EXPECT_EQ(status["sessions"][0]["generation"], 1);
  EXPECT_EQ(status["workers"][0]["device"], "cpu");
  EXPECT_EQ(status["events"][0]["event"], "session_opened");
  EXPECT_EQ(status["events"][0]["age_ns"], 200 * k_millisecond);
  const json experts = json::parse(experts_document(b.view()));
  EXPECT_EQ(experts["workers"], (json{"a", "b"}));
  EXPECT_EQ(experts["layers"][0]["rows"], 40);
  const json environments = json::parse(environments_document(b.view()));
  EXPECT_EQ(environments["workers"]["b"]["schema"], "moetier.environment/1");
}

TEST(tier_document, of_a_tier_without_a_plan_is_whole_too) {
  bench b;
  b.start();
  const json status = json::parse(status_document(b.view()));
  EXPECT_TRUE(status["load"].empty());
  EXPECT_TRUE(json::parse(experts_document(b.view()))["layers"].empty());
}

TEST(tier_view, keeps_the_newest_events_and_no_more) {
  bench b;
  b.serve();
  for (int i = 0; i < 100; ++i) {
    b.now += k_second;
    b.lose_link("a");
    b.connect("a");
  }
  const tier_view view = b.view();
  ASSERT_EQ(view.events.size(), k_events_shown);
  EXPECT_EQ(view.events.front().age, 0u);
  for (std::size_t i = 1; i < view.events.size(); ++i) {
    EXPECT_GE(view.events[i].age, view.events[i - 1].age);
  }
}

TEST(log_lines, name_the_worker_or_the_session_that_they_are_about) {
  bench b;
  b.serve();
  b.open();
  b.lose_link("b");
  bool lost = false;
  bool opened = false;
  for (const log_event& l : b.all<log_event>()) {
    lost = lost || (l.event == "worker_lost" && l.about.worker == "b");
    opened = opened || (l.event == "session_opened" && l.about.session == session_id(1));
  }
  EXPECT_TRUE(lost);
  EXPECT_TRUE(opened);
}

TEST(log_level, reaches_workers_with_the_answers_to_their_beats) {
  bench b;
  b.serve();
  // The newest answer that a worker had; nothing before its first beat.
  const auto told = [&b] {
    b.wait(2 * b.options.heartbeat_interval);
    const auto answers = b.heard_by<control::heartbeat_answer>("a");
    return answers.empty() ? std::nullopt : std::optional(answers.back().log);
  };
  EXPECT_EQ(told(), control::log_threshold::as_configured);
  b.step(set_log_level{control::log_threshold::debug});
  EXPECT_EQ(told(), control::log_threshold::debug);
  b.lose_link("a");
  b.join("a", 21);
  EXPECT_EQ(told(), control::log_threshold::debug);
}

}  // namespace
}  // namespace moetier::coordinator
