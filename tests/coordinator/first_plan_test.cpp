// How the first plan comes about: who must be there, what is compared before it is decided, and
// which weights are never committed together.

#include <gtest/gtest.h>

#include "tests/coordinator/core_bench.hpp"

namespace moetier::coordinator {
namespace {

// --- the first plan ---

TEST(coordinator_first_plan, the_first_plan_waits_for_all_expected_workers) {
  bench b(3);
  b.start();
  b.join("c", 13);
  b.join("a", 11);
  EXPECT_EQ(b.view().not_ready_reasons, std::vector<std::string>{"waiting for 1 of 3 workers"});
  EXPECT_TRUE(b.heard_by<control::prepare>("a").empty());
  b.join("b", 12);
  ASSERT_TRUE(b.view().ready);
  // Ids and slots follow the names, whoever came first.
  const auto view = b.view();
  EXPECT_EQ(view.workers[0].name, "a");
  EXPECT_EQ(view.workers[2].worker, worker_id(2));
  EXPECT_EQ(view.workers[2].first_slot, 8u);
  EXPECT_EQ(view.generation, generation_number(1));
  EXPECT_EQ(b.all<publish_snapshot>().size(), 1u);
}

TEST(coordinator_first_plan, commit_is_sent_only_after_the_decision_is_durable) {
  bench b;
  b.start();
  b.join("a", 11);
  b.disk_answers = false;
  b.join("b", 12);
  b.acknowledge();  // the attempt's epoch: PREPARE goes out and is answered
  ASSERT_EQ(b.heard_by<control::prepare>("a").size(), 1u);
  ASSERT_TRUE(b.pending.has_value());
  EXPECT_EQ(b.pending->value.generation, generation_number(1));
  EXPECT_TRUE(b.heard_by<control::commit>("a").empty());
  EXPECT_FALSE(b.view().ready);
  b.acknowledge();
  EXPECT_EQ(b.heard_by<control::commit>("a").size(), 1u);
  EXPECT_TRUE(b.view().ready);
}

TEST(coordinator_first_plan, nothing_is_decided_before_all_are_prepared) {
  bench b;
  b.start();
  b.join("a", 11);
  b.add("b", 12).loads = false;
  b.connect("b");
  EXPECT_EQ(b.disk->generation, generation_number(0));
  EXPECT_EQ(b.view().not_ready_reasons, std::vector<std::string>{"1 of 2 workers load weights"});
}

TEST(coordinator_first_plan, nothing_is_published_before_all_are_committed) {
  bench b;
  b.start();
  b.join("a", 11);
  b.add("b", 12).commits = false;
  b.connect("b");
  EXPECT_EQ(b.disk->generation, generation_number(1));
  EXPECT_TRUE(b.all<publish_snapshot>().empty());
  const auto c = b.heard_by<control::commit>("b").at(0);
  b.say("b", control::committed{c.epoch, c.generation, c.plan, c.incarnation});
  EXPECT_EQ(b.all<publish_snapshot>().size(), 1u);
}

TEST(coordinator_first_plan, a_prepared_of_an_earlier_attempt_does_not_count) {
  bench b;
  b.start();
  b.add("a", 11).loads = false;
  b.connect("a");
  b.add("b", 12).loads = false;
  b.connect("b");
  const auto first = b.heard_by<control::prepare>("a").at(0);
  b.lose_link("b");
  b.connect("b");  // a new attempt of the same plan
  ASSERT_EQ(b.heard_by<control::prepare>("a").size(), 2u);
  const auto second = b.heard_by<control::prepare>("a").at(1);
  EXPECT_EQ(first.plan, second.plan);
  EXPECT_LT(first.epoch, second.epoch);
  const auto sums = checksums_of(placement_of(first.placement), "a");
  const auto before = b.view().stale_commands_refused;
  b.say("a", control::prepared{first.epoch, first.generation, first.plan, first.incarnation, sums});
  EXPECT_EQ(b.view().stale_commands_refused, before + 1);
  EXPECT_EQ(b.view().not_ready_reasons, std::vector<std::string>{"2 of 2 workers load weights"});
}

TEST(coordinator_first_plan, replicas_whose_bytes_differ_are_never_committed) {
  bench b;
  b.start();
  b.join("a", 11);
  b.add("b", 12).spoil = 5;
  b.connect("b");
  EXPECT_EQ(b.disk->generation, generation_number(0));
  EXPECT_TRUE(b.logged("worker_quarantined"));
  EXPECT_EQ(b.view().gone_by_cause, (std::array<std::uint64_t, 5>{0, 0, 0, 0, 2}))
      << "both, by cause";
  EXPECT_EQ(b.heard_by<control::refused>("b").back().cause, control::refused::why::load_failed);
  EXPECT_FALSE(b.view().ready);
  EXPECT_NE(b.view().not_ready_reasons.at(0).find("bytes of workers a and b differ"),
            std::string::npos);
}

// The second name was read from the attempt that the first quarantine drops.
TEST(coordinator_first_plan,
     of_two_workers_whose_bytes_differ_both_are_refused_whatever_their_names) {
  const std::string one = "a worker whose name no short string holds";
  const std::string two = "b worker whose name no short string holds";
  bench b;
  b.start();
  b.join(one, 11);
  b.add(two, 12).spoil = 5;
  b.connect(two);
  for (const std::string& name : {one, two}) {
    ASSERT_FALSE(b.heard_by<control::refused>(name).empty()) << name;
    EXPECT_EQ(b.heard_by<control::refused>(name).back().cause, control::refused::why::load_failed);
  }
  EXPECT_TRUE(b.view().workers.empty());
}

TEST(coordinator_first_plan, shared_experts_whose_bytes_differ_are_never_committed) {
  bench b;
  b.options.model.shared = {.intermediate_size = 16, .count = 2};
  b.start();
  b.join("a", 11);
  b.add("b", 12).spoil_shared = 5;
  b.connect("b");
  EXPECT_EQ(b.disk->generation, generation_number(0));
  EXPECT_TRUE(b.logged("worker_quarantined"));
  EXPECT_EQ(b.view().not_ready_reasons.at(0).find("shared experts: the bytes of workers a and b"),
            std::size_t{0});
}

TEST(coordinator_first_plan, a_returning_worker_with_other_shared_experts_is_quarantined) {
  for (const bool reloads : {true, false}) {  // a new process, or one that says it still serves
    bench b;
    b.options.model.shared = {.intermediate_size = 16, .count = 2};
    b.serve();
    b.lose_link("b");
    if (reloads) {
      b.add("b", 22).spoil_shared = 1;
    } else {
      b.processes.at("b").hello.held_shared_digest += 1;
    }
    b.connect("b");
    EXPECT_TRUE(b.logged("worker_quarantined")) << reloads;
  }
}

TEST(coordinator_first_plan, a_record_of_other_routers_or_files_stops_the_start) {
  for (const bool routers : {true, false}) {
    bench b;
    b.options.routing_digest = 5;
    b.options.checkpoint_digest = 0xd1;
    b.serve();
    ASSERT_EQ(b.disk->routing_digest, 5u);
    (routers ? b.options.routing_digest : b.options.checkpoint_digest) = 6;
    b.restart();
    ASSERT_EQ(b.all<stopped>().size(), 1u) << routers;
    EXPECT_TRUE(b.all<stopped>()[0].failed);
  }
}

TEST(coordinator_first_plan, a_worker_with_other_weight_files_than_the_coordinators_is_refused) {
  bench b;
  b.options.checkpoint_digest = 0xd2;
  b.start();
  b.join("a", 11);
  EXPECT_EQ(refusal_of(b, "a"),
            "checkpoint digest is 00000000000000d1; the tier's is 00000000000000d2");
}

TEST(coordinator_first_plan, an_infeasible_placement_is_said_and_the_process_lives) {
  bench b;
  b.options.model = small_model(9);  // two workers of four slots
  b.start();
  b.join("a", 11);
  b.join("b", 12);
  EXPECT_TRUE(b.logged("plan_infeasible"));
  EXPECT_TRUE(b.all<stopped>().empty());
  EXPECT_NE(b.view().not_ready_reasons.at(0).find("9 experts cannot be divided over 2 workers"),
            std::string::npos);
}

TEST(coordinator_first_plan, an_infeasible_placement_ends_a_process_that_is_told_not_to_wait) {
  bench b;
  b.options.model = small_model(9);
  b.options.ends_when_infeasible = true;
  b.start();
  b.join("a", 11);
  EXPECT_TRUE(b.all<stopped>().empty());
  b.join("b", 12);
  ASSERT_EQ(b.all<stopped>().size(), 1u);
  EXPECT_TRUE(b.all<stopped>()[0].failed);
  EXPECT_EQ(b.all<stopped>()[0].cause, reason::partition_invalid);
  EXPECT_NE(b.all<stopped>()[0].why.find("9 experts cannot be divided over 2 workers"),
            std::string::npos);
}

TEST(coordinator_first_plan, workers_without_a_wish_get_the_even_partition) {
  bench b(3);
  b.start();
  b.join("a", 11, 0);
  b.join("b", 12, 0);
  b.join("c", 13, 0);
  const auto view = b.view();
  ASSERT_TRUE(view.ready);
  EXPECT_EQ(view.workers[0].slots, 2u);
  EXPECT_EQ(view.workers[1].slots, 1u);
  EXPECT_EQ(view.workers[2].first_slot, 3u);
  EXPECT_EQ(view.unreplicated_experts, 8u);
}

TEST(coordinator_first_plan, a_placement_file_is_obeyed) {
  bench b;
  b.options.placement_file_name = "plan.json";
  b.options.placement_file_text =
      R"({"format":1,"fingerprint":"000000000000f00d","experts":4,"slots_per_worker":[3,2],)"
      R"("layers":[{"layer":0,"slots":[0,1,2,3,0]},{"layer":1,"slots":[3,2,1,0,3]}]})";
  b.start();
  b.join("a", 11, 0);
  b.join("b", 12, 2);
  ASSERT_TRUE(b.view().ready) << b.view().not_ready_reasons.at(0);
  EXPECT_EQ(b.snapshot()->placement.layers()[1].experts,
            (std::vector<std::int32_t>{3, 2, 1, 0, 3}));
}

TEST(coordinator_first_plan, live_replicas_take_over_the_files_shares_of_a_lost_worker) {
  bench b;
  b.options.placement_file_name = "plan.json";
  b.options.placement_file_text =
      R"({"format":1,"experts":4,"slots_per_worker":[3,2],"layers":[)"
      R"({"layer":0,"slots":[0,1,2,3,0],"shares":[60000,65536,65536,65536,5536]},)"
      R"({"layer":1,"slots":[3,2,1,0,3]}]})";
  b.start();
  b.join("a", 11, 0);
  b.join("b", 12, 2);
  ASSERT_TRUE(b.view().ready) << b.view().not_ready_reasons.at(0);
  const auto units = [&](std::size_t layer) {
    const auto u = b.snapshot()->shares.units(layer);
    return std::vector<std::uint32_t>(u.begin(), u.end());
  };
  EXPECT_EQ(units(0), (std::vector<std::uint32_t>{60000, 65536, 65536, 65536, 5536}));
  EXPECT_EQ(units(1), (std::vector<std::uint32_t>{32768, 65536, 65536, 65536, 32768}));
  b.lose_link("a");
  EXPECT_EQ(units(0), (std::vector<std::uint32_t>{0, 0, 0, 65536, 65536}));
}

TEST(coordinator_first_plan, a_file_beside_the_recorded_plan_is_called_unused) {
  bench b;
  b.options.placement_file_name = "plan.json";
  const std::string text =
      R"({"format":1,"experts":4,"slots_per_worker":[3,2],"layers":[)"
      R"({"layer":0,"slots":[0,1,2,3,0],"shares":[60000,65536,65536,65536,5536]},)"
      R"({"layer":1,"slots":[3,2,1,0,3]}]})";
  const auto run = [&](const std::string& file) {
    b.options.placement_file_text = file;
    b.restart();
    b.join("a", 11, 0);
    b.join("b", 12, 2);
    return b.snapshot()->shares.units(0)[0];
  };
  b.options.placement_file_text = text;
  b.start();
  b.join("a", 11, 0);
  b.join("b", 12, 2);
  EXPECT_EQ(run(text), 60000u);
  EXPECT_FALSE(b.logged("plan_file_unused"));
  std::string other = text;
  other.replace(other.find("[0,1,2,3,0]"), 11, "[0,1,2,3,1]");
  other.replace(other.find(",\"shares\""), 43, "");
  EXPECT_EQ(run(other), 32768u);
  EXPECT_TRUE(b.logged("plan_file_unused"));
}

TEST(coordinator_first_plan, shares_that_do_not_sum_up_are_refused_before_anything_loads) {
  bench b;
  b.options.placement_file_name = "plan.json";
  b.options.placement_file_text =
      R"({"format":1,"experts":4,"slots_per_worker":[3,2],"layers":[)"
      R"({"layer":0,"slots":[0,1,2,3,0],"shares":[60000,65536,65536,65536,5535]},)"
      R"({"layer":1,"slots":[3,2,1,0,3]}]})";
  b.start();
  b.join("a", 11, 0);
  b.join("b", 12, 2);
  EXPECT_FALSE(b.view().ready);
  EXPECT_NE(b.view().not_ready_reasons.at(0).find("layer 0 expert 0: shares sum to 65535"),
            std::string::npos)
      << b.view().not_ready_reasons.at(0);
}

}  // namespace
}  // namespace moetier::coordinator
