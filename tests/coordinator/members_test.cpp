// Who joins, who is refused, who is given up and how one comes back.

#include <gtest/gtest.h>

#include "tests/coordinator/core_bench.hpp"

namespace moetier::coordinator {
namespace {

// --- start ---

TEST(coordinator_members, nothing_goes_to_a_worker_before_the_new_epoch_is_durable) {
  bench b;
  b.disk_answers = false;
  b.start();
  b.join("a", 11);
  EXPECT_TRUE(b.all<send_to_worker>().empty());
  ASSERT_EQ(b.all<write_record>().size(), 1u);
  EXPECT_EQ(b.all<write_record>()[0].expected, epoch_number(0));
  EXPECT_EQ(b.all<write_record>()[0].value.epoch, epoch_number(1));
  b.acknowledge();
  ASSERT_EQ(b.heard_by<control::welcome>("a").size(), 1u);
  EXPECT_EQ(b.heard_by<control::welcome>("a")[0].epoch, epoch_number(1));
}

TEST(coordinator_members, a_record_of_another_model_stops_the_start) {
  bench b;
  b.disk.emplace();
  b.disk->epoch = epoch_number(3);
  b.disk->model_fingerprint = 1;
  b.start();
  ASSERT_EQ(b.all<stopped>().size(), 1u);
  EXPECT_TRUE(b.all<stopped>()[0].failed);
  EXPECT_TRUE(b.all<write_record>().empty());
}

TEST(coordinator_members, a_failed_compare_and_set_stops_it_without_a_word_to_workers) {
  bench b;
  b.disk_answers = false;
  b.start();
  b.join("a", 11);
  b.acknowledge(false);
  ASSERT_EQ(b.all<stopped>().size(), 1u);
  EXPECT_TRUE(b.all<stopped>()[0].failed);
  EXPECT_TRUE(b.all<send_to_worker>().empty());
}

// --- a disk that fails ---

constexpr const char* k_full = "durable state: writing a record: No space left on device";

TEST(coordinator_members, a_full_disk_at_the_very_first_start_ends_it_and_says_so) {
  bench b;
  b.disk_answers = false;
  b.start();
  b.acknowledge(false, k_full);
  ASSERT_EQ(b.all<stopped>().size(), 1u);
  EXPECT_TRUE(b.all<stopped>()[0].failed);
  EXPECT_EQ(b.all<stopped>()[0].cause, reason::state_unusable);
  EXPECT_EQ(b.all<stopped>()[0].why, k_full);
}

TEST(coordinator_members, a_full_disk_stops_no_tier_that_serves_and_is_asked_again) {
  bench b;
  b.serve();
  b.disk_answers = false;
  b.forget();
  b.lose_link("b");
  ASSERT_TRUE(b.pending.has_value());
  const record wanted = b.pending->value;
  b.acknowledge(false, k_full);
  EXPECT_TRUE(b.all<stopped>().empty());
  EXPECT_TRUE(b.all<publish_snapshot>().empty()) << "the loss is not durable";
  EXPECT_TRUE(b.view().ready) << "what is published is served on";
  ASSERT_EQ(b.all<tell_suspicion>().size(), 1u) << "and sources do without b";
  ASSERT_EQ(b.all<tell_suspicion>()[0].suspicion->workers.size(), 1u);
  EXPECT_EQ(b.all<tell_suspicion>()[0].suspicion->workers[0].worker, worker_id(1));
  b.wait(900 * k_millisecond);
  EXPECT_FALSE(b.pending.has_value()) << "no second try within the pause";
  EXPECT_TRUE(b.logged("record_not_written"));
  b.wait(200 * k_millisecond);
  ASSERT_TRUE(b.pending.has_value());
  EXPECT_EQ(b.pending->value, wanted);
  b.forget();
  b.acknowledge(false, k_full);
  EXPECT_FALSE(b.logged("record_not_written")) << "once, as long as it is the same trouble";
  b.wait(1100 * k_millisecond);
  b.acknowledge();
  EXPECT_TRUE(b.logged("record_written_again"));
  EXPECT_EQ(b.snapshot()->epoch, wanted.epoch);
  EXPECT_FALSE(b.is_live(1));
  EXPECT_TRUE(b.all<tell_suspicion>().back().suspicion->workers.empty());
  b.wait(1100 * k_millisecond);
  EXPECT_FALSE(b.pending.has_value());
}

TEST(coordinator_members, a_restart_with_a_full_disk_waits_for_it) {
  bench b;
  b.serve();
  b.disk_answers = false;
  b.restart();
  b.forget();
  b.acknowledge(false, k_full);
  EXPECT_TRUE(b.all<stopped>().empty());
  const std::vector<std::string> waits{"the durable record cannot be written"};
  EXPECT_EQ(b.view().not_ready_reasons, waits);
  b.wait(1100 * k_millisecond);
  ASSERT_TRUE(b.pending.has_value());
  b.disk_answers = true;
  b.acknowledge();
  b.connect("a");
  b.connect("b");
  EXPECT_TRUE(b.view().ready);
}

TEST(coordinator_members, a_worker_that_knows_a_higher_epoch_stops_it) {
  bench b;
  b.start();
  b.add("a", 11).hello.highest_epoch = epoch_number(9);
  b.connect("a");
  ASSERT_EQ(b.all<stopped>().size(), 1u);
  EXPECT_EQ(b.all<stopped>()[0].why, "epoch 9 exists; this coordinator's is 1");
}

// One wrong address in a worker's settings must not stop a tier.
TEST(coordinator_members, another_tiers_worker_of_a_higher_epoch_is_refused_and_stops_nothing) {
  bench b;
  b.options.checkpoint_digest = 0xd1;
  b.start();
  b.join("a", 11);
  auto& other_model = b.add("b", 12).hello;
  other_model.highest_epoch = epoch_number(9);
  other_model.model_fingerprint = 1;
  b.connect("b");
  EXPECT_EQ(refusal_of(b, "b"),
            "model fingerprint is 0000000000000001; the tier's is 000000000000f00d");
  auto& other_files = b.add("b", 22).hello;
  other_files.highest_epoch = epoch_number(9);
  other_files.checkpoint_digest = 0xd2;
  b.connect("b");
  EXPECT_EQ(refusal_of(b, "b"),
            "checkpoint digest is 00000000000000d2; the tier's is 00000000000000d1");
  EXPECT_TRUE(b.all<stopped>().empty());
  b.join("b", 32);
  EXPECT_TRUE(b.view().ready);
}

// --- joining ---

TEST(coordinator_members, a_worker_unlike_the_tier_is_refused_with_every_field_that_differs) {
  bench b(3);
  b.start();
  b.join("a", 11);
  auto& odd = b.add("b", 12);
  odd.hello.protocol = 9;
  odd.hello.model_fingerprint = 1;
  odd.hello.checkpoint_digest = 2;
  odd.hello.carrier = "ucx";
  odd.hello.heartbeat_timeout_ns = 1;
  odd.hello.node = 99;
  b.connect("b");
  EXPECT_EQ(refusal_of(b, "b"),
            "protocol version is 9; the tier's is 5, "
            "model fingerprint is 0000000000000001; the tier's is 000000000000f00d, "
            "heartbeat timeout is 1; the tier's is 500000000, "
            "carrier is ucx; the tier's is in_process, "
            "checkpoint digest is 0000000000000002; the tier's is 00000000000000d1, "
            "its actor node has the coordinator's own identity");
  EXPECT_EQ(b.view().workers.size(), 1u);
}

TEST(coordinator_members, a_second_process_of_a_live_name_is_refused_and_takes_over_a_lost_one) {
  bench b;
  b.serve();
  const auto first = b.processes.at("a");
  b.join("a", 21);
  EXPECT_EQ(refusal_of(b, "a"), "another process of this name is in service");
  b.processes["a"] = first;
  b.lose_link("a");
  b.join("a", 22);
  EXPECT_EQ(refusal_of(b, "a"), "not refused");
  EXPECT_EQ(b.heard_by<control::welcome>("a").back().worker, worker_id(0));
}

TEST(coordinator_members, one_more_worker_than_the_placement_has_is_refused) {
  bench b;
  b.serve();
  b.join("c", 13);
  EXPECT_EQ(refusal_of(b, "c"), "the placement has no slots for this worker");
}

TEST(coordinator_members, a_repeated_hello_is_welcomed_again_and_changes_nothing) {
  bench b;
  b.serve();
  b.forget();
  b.step(worker_message{b.processes.at("a").link, b.processes.at("a").hello});
  EXPECT_EQ(b.heard_by<control::welcome>("a").size(), 1u);
  EXPECT_TRUE(b.all<write_record>().empty());
  EXPECT_TRUE(b.view().ready);
}

// --- death ---

TEST(coordinator_members, a_closed_link_is_one_epoch_and_one_masked_revision_in_that_order) {
  bench b;
  b.serve();
  const auto before = b.view();
  b.disk_answers = false;
  b.forget();
  b.lose_link("b");
  ASSERT_TRUE(b.pending.has_value());
  EXPECT_EQ(b.pending->value.epoch.value, before.epoch.value + 1);
  EXPECT_TRUE(b.all<publish_snapshot>().empty()) << "masked before the epoch was durable";
  b.acknowledge();
  ASSERT_EQ(b.all<publish_snapshot>().size(), 1u);
  EXPECT_TRUE(b.is_live(0));
  EXPECT_FALSE(b.is_live(1));
  EXPECT_EQ(b.view().generation, before.generation);
  EXPECT_GT(b.view().revision, before.revision);
  for (std::uint32_t dense = 4; dense < 8; ++dense) {
    EXPECT_EQ(b.snapshot()->shares.units(0)[dense], 0u);
  }
  EXPECT_TRUE(b.view().ready);
  EXPECT_EQ(b.view().unreplicated_experts, 8u);
}

TEST(coordinator_members, the_death_of_the_only_replica_makes_the_tier_not_ready_and_names_it) {
  bench b;
  b.start();
  b.join("a", 11, 0);
  b.join("b", 12, 0);
  b.lose_link("b");
  EXPECT_FALSE(b.view().ready);
  EXPECT_EQ(b.view().lost_experts, 4u);
  EXPECT_EQ(b.view().not_ready_reasons.at(0), "layer 0 expert 2 has no live replica");
}

TEST(coordinator_members, a_leaving_worker_is_masked_before_it_is_gone) {
  bench b;
  b.serve();
  b.say("b", control::leaving{incarnation_id(12)});
  EXPECT_FALSE(b.is_live(1));
  EXPECT_EQ(b.view().workers[1].state, worker_state::leaving);
  b.lose_link("b");
  EXPECT_EQ(b.view().workers[1].state, worker_state::lost);
}

// --- return ---

TEST(coordinator_members, a_restarted_worker_gets_its_place_loads_is_checked_and_unmasked) {
  bench b;
  b.serve();
  b.lose_link("b");
  const auto masked = b.view();
  b.forget();
  b.disk_answers = false;
  b.join("b", 22);
  EXPECT_EQ(b.heard_by<control::welcome>("b").at(0).worker, worker_id(1));
  ASSERT_EQ(b.heard_by<control::prepare>("b").size(), 1u);
  EXPECT_TRUE(b.heard_by<control::commit>("b").empty()) << "COMMIT before its epoch was durable";
  b.acknowledge();
  EXPECT_EQ(b.heard_by<control::commit>("b").size(), 1u);
  EXPECT_TRUE(b.is_live(1));
  EXPECT_EQ(b.snapshot()->workers[1].incarnation, incarnation_id(22));
  EXPECT_EQ(b.view().epoch.value, masked.epoch.value + 1);
  EXPECT_EQ(b.view().generation, masked.generation);
  EXPECT_TRUE(b.heard_by<control::prepare>("a").empty()) << "no plan switch for a return";
}

// All are replaced by a build that speaks otherwise: nobody is held to the words of one that is
// gone, but the second to those of the first.
TEST(coordinator_members, workers_that_are_gone_speak_for_nobody) {
  bench b;
  b.serve();
  b.lose_link("a");
  b.lose_link("b");
  auto other = toy::cpu_environment();
  other.numerics_combine = 2;
  const auto replace = [&](const char* name, std::uint64_t incarnation, const char* carrier) {
    auto& hello = b.add(name, incarnation).hello;
    hello.carrier = carrier;
    hello.environment = toy::environment_document(other);
    b.connect(name);
  };
  replace("a", 21, "ucx");
  EXPECT_EQ(refusal_of(b, "a"), "not refused");
  replace("b", 22, "in_process");
  EXPECT_EQ(refusal_of(b, "b"), "carrier is in_process; the tier's is ucx");
  replace("b", 32, "ucx");
  EXPECT_EQ(refusal_of(b, "b"), "not refused");
  EXPECT_TRUE(b.is_live(0));
  EXPECT_TRUE(b.is_live(1));
}

TEST(coordinator_members, a_worker_that_comes_back_with_other_bytes_stays_out) {
  bench b;
  b.serve();
  b.lose_link("b");
  b.add("b", 22).spoil = 1;
  b.connect("b");
  EXPECT_FALSE(b.is_live(1));
  EXPECT_EQ(b.heard_by<control::refused>("b").back().cause, control::refused::why::load_failed);
  b.connect("b");  // the same process asks again
  EXPECT_EQ(refusal_of(b, "b"), "the weights of this process failed their check");
}

TEST(coordinator_members, a_link_flap_of_a_serving_worker_needs_no_reload) {
  bench b;
  b.serve();
  b.lose_link("b");
  b.forget();
  b.connect("b");  // the same process, still serving
  EXPECT_TRUE(b.heard_by<control::prepare>("b").empty());
  EXPECT_TRUE(b.is_live(1));
}

TEST(coordinator_members, a_flap_whose_first_end_is_not_seen_changes_nothing_for_sources) {
  bench b;
  b.serve();
  const auto before = b.view();
  const link_number old = b.processes.at("b").link;
  b.forget();
  b.connect("b");
  EXPECT_EQ(b.all<cut_worker_link>().at(0).link, old);
  EXPECT_TRUE(b.all<publish_snapshot>().empty());
  EXPECT_EQ(b.view().epoch, before.epoch);
  b.step(worker_link_lost{old});
  EXPECT_TRUE(b.is_live(1));
}

TEST(coordinator_members, answers_of_an_earlier_process_are_dropped_and_counted) {
  bench b;
  b.serve();
  b.lose_link("b");
  b.add("b", 22).loads = false;
  b.connect("b");
  const auto before = b.view().stale_commands_refused;
  const auto p = b.heard_by<control::prepare>("b").at(0);
  b.say("b", control::prepared{p.epoch, p.generation, p.plan, incarnation_id(12),
                               checksums_of(placement_of(p.placement), "b")});
  EXPECT_EQ(b.view().stale_commands_refused, before + 1);
  EXPECT_FALSE(b.is_live(1));
}

TEST(coordinator_members, a_prepare_that_is_not_answered_is_said_again_and_limited) {
  bench b;
  b.options.prepare_limit = 5 * k_second;
  b.serve();
  b.lose_link("b");
  b.add("b", 22).loads = false;
  b.connect("b");
  b.wait(2 * k_second);
  EXPECT_EQ(b.heard_by<control::prepare>("b").size(), 3u);
  b.wait(4 * k_second);
  EXPECT_TRUE(b.logged("worker_quarantined"));
}

// --- restart of the coordinator ---

TEST(coordinator_members, a_restart_finds_the_serving_workers_and_publishes_at_once) {
  bench b;
  b.serve();
  const auto before = b.view();
  b.forget();
  b.restart();
  b.connect("a");
  EXPECT_TRUE(b.all<publish_snapshot>().empty()) << "the other one may be here in a moment";
  b.connect("b");
  ASSERT_EQ(b.all<publish_snapshot>().size(), 1u);
  EXPECT_TRUE(b.heard_by<control::prepare>("a").empty());
  const auto after = b.view();
  EXPECT_EQ(after.epoch.value, before.epoch.value + 1);
  EXPECT_EQ(after.plan, before.plan);
  EXPECT_GT(after.revision, before.revision);
  EXPECT_EQ(after.snapshot->resolution_id, before.snapshot->resolution_id);
  EXPECT_EQ(after.snapshot->placement, before.snapshot->placement);
}

TEST(coordinator_members, a_worker_missing_after_a_restart_is_masked_after_the_timeout) {
  bench b(3);
  b.start();
  for (const char* name : {"a", "b", "c"}) b.join(name, 11 + static_cast<std::uint64_t>(*name));
  b.restart();
  b.connect("a");
  b.connect("b");
  b.wait(400 * k_millisecond);
  EXPECT_EQ(b.snapshot(), nullptr);
  b.wait(300 * k_millisecond);
  ASSERT_NE(b.snapshot(), nullptr);
  EXPECT_FALSE(b.is_live(2));
  b.connect("c");
  EXPECT_TRUE(b.is_live(2));
}

TEST(coordinator_members, a_restart_finishes_a_decided_plan_with_workers_that_only_prepared) {
  bench b;
  b.start();
  b.add("a", 11).commits = false;
  b.connect("a");
  b.add("b", 12).commits = false;
  b.connect("b");
  ASSERT_EQ(b.disk->generation, generation_number(1));
  b.forget();
  for (auto& [name, p] : b.processes) p.commits = true;
  b.restart();
  b.connect("a");
  b.connect("b");
  EXPECT_TRUE(b.view().ready);
  EXPECT_EQ(b.view().generation, generation_number(1));
}

TEST(coordinator_members, shutting_down_before_the_decision_aborts_the_plan) {
  bench b;
  b.start();
  b.join("a", 11);
  b.add("b", 12).loads = false;
  b.connect("b");
  b.step(shut_down{});
  EXPECT_EQ(b.heard_by<control::abort_plan>("a").size(), 1u);
  EXPECT_EQ(b.heard_by<control::abort_plan>("b").size(), 1u);
  EXPECT_FALSE(b.all<stopped>().at(0).failed);
}

TEST(coordinator_members, the_view_shows_load_by_layer_and_slot) {
  bench b;
  b.serve();
  control::load_report r;
  r.incarnation = incarnation_id(11);
  r.generation = b.view().generation;
  r.plan = b.view().plan;
  r.rows_total = 70;
  r.counts = {1, 2, 3, 4, 5, 6, 7, 8};
  b.say("a", r);
  EXPECT_EQ(b.view().workers[0].rows_total, 70u);
  EXPECT_EQ(b.view().workers[0].counts[1], (std::vector<std::uint64_t>{5, 6, 7, 8}));
  r.counts = {1};
  b.say("a", r);  // of another shape: not taken
  EXPECT_EQ(b.view().workers[0].counts[1], (std::vector<std::uint64_t>{5, 6, 7, 8}));
}

}  // namespace
}  // namespace moetier::coordinator
