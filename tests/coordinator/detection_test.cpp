#include <gtest/gtest.h>

#include "tests/coordinator/core_bench.hpp"

// How the coordinator's core tells who is silent, stuck or only late, and what follows from it.
namespace moetier::coordinator {
namespace {

void serve_three(bench& b) {
  b.start();
  for (const char* name : {"a", "b", "c"}) b.join(name, 11 + static_cast<std::uint64_t>(*name));
}

incarnation_id incarnation_of(const bench& b, const std::string& name) {
  return b.processes.at(name).hello.incarnation;
}

late_report report_on_c(const bench& b, const session_grant& g) {
  return {g.session, incarnation_id(7000 + 1), b.view().workers.at(2).worker,
          incarnation_of(b, "c")};
}

TEST(coordinator_detection, a_silent_worker_is_given_up_after_the_timeout_and_its_link_is_cut) {
  bench b(3);
  serve_three(b);
  b.processes.at("c").beats = false;
  b.wait(400 * k_millisecond);
  EXPECT_TRUE(b.is_live(2));
  b.wait(300 * k_millisecond);
  EXPECT_FALSE(b.is_live(2));
  EXPECT_TRUE(b.processes.at("c").cut);
}

TEST(coordinator_detection, an_engine_that_stands_still_over_an_old_batch_counts_as_silent) {
  bench b(3);
  serve_three(b);
  b.wait(300 * k_millisecond);
  b.processes.at("c").oldest_batch_ns = 1;  // young, but the tick stands still
  b.wait(400 * k_millisecond);
  EXPECT_TRUE(b.is_live(2));
  b.wait(200 * k_millisecond);
  EXPECT_FALSE(b.is_live(2));
  EXPECT_TRUE(b.processes.at("c").cut);
  EXPECT_GE(b.view().beats_without_progress, 4u);
}

TEST(coordinator_detection,
     a_batch_older_than_the_timeout_counts_as_silence_though_the_tick_rises) {
  bench b(3);
  serve_three(b);
  const auto beat = [&](std::uint64_t oldest) {
    auto& p = b.processes.at("c");
    control::heartbeat m;
    m.incarnation = p.hello.incarnation;
    m.sequence = ++p.sequence;
    m.engine_tick = ++p.tick;
    m.oldest_batch_ns = oldest;
    if (p.link != 0) b.say("c", m);
  };
  b.processes.at("c").beats = false;
  for (int i = 0; i < 8; ++i) {
    beat(b.options.heartbeat_timeout);  // just young enough
    b.wait(100 * k_millisecond);
  }
  EXPECT_TRUE(b.is_live(2));
  for (int i = 0; i < 6; ++i) {
    beat(b.options.heartbeat_timeout + 1);
    b.wait(100 * k_millisecond);
  }
  EXPECT_FALSE(b.is_live(2));
  EXPECT_EQ(b.view().losses.at(0).cause, loss_cause::stuck);
}

TEST(coordinator_detection, an_engine_that_is_idle_may_stand_still) {
  bench b(3);
  serve_three(b);
  b.processes.at("c").beats = false;
  for (int i = 0; i < 10; ++i) {
    control::heartbeat m;
    m.incarnation = b.processes.at("c").hello.incarnation;
    m.sequence = ++b.processes.at("c").sequence;
    m.engine_tick = 5;
    b.say("c", m);
    b.wait(100 * k_millisecond);
  }
  EXPECT_TRUE(b.is_live(2));
}

TEST(coordinator_detection, a_stuck_engine_is_taken_back_only_when_it_turns_again) {
  bench b(3);
  serve_three(b);
  b.wait(300 * k_millisecond);
  b.processes.at("c").oldest_batch_ns = k_second;
  b.wait(700 * k_millisecond);
  b.connect("c");
  b.wait(300 * k_millisecond);
  EXPECT_FALSE(b.is_live(2));
  b.processes.at("c").oldest_batch_ns = 0;
  b.wait(100 * k_millisecond);
  EXPECT_TRUE(b.is_live(2));
}

TEST(coordinator_detection, a_link_that_breaks_neither_spares_a_stuck_worker_nor_condemns_it) {
  bench b(3);
  serve_three(b);
  b.wait(300 * k_millisecond);
  b.processes.at("c").oldest_batch_ns = k_second;
  b.wait(300 * k_millisecond);
  b.connect("c");
  EXPECT_TRUE(b.is_live(2)) << "its time is not over";
  b.wait(200 * k_millisecond);
  EXPECT_TRUE(b.is_live(2));
  b.wait(100 * k_millisecond);
  EXPECT_FALSE(b.is_live(2)) << "and does not begin anew";
}

TEST(coordinator_detection, when_most_fall_silent_together_they_get_a_second_timeout) {
  bench b(3);
  serve_three(b);
  b.processes.at("b").beats = false;
  b.processes.at("c").beats = false;
  b.wait(900 * k_millisecond);
  EXPECT_TRUE(b.is_live(1));
  EXPECT_TRUE(b.logged("suspects_itself"));
  b.wait(200 * k_millisecond);
  EXPECT_FALSE(b.is_live(1));
  EXPECT_FALSE(b.is_live(2));
}

TEST(coordinator_detection, closed_links_count_at_once_however_many) {
  bench b(3);
  serve_three(b);
  b.lose_link("b");
  b.lose_link("c");
  EXPECT_FALSE(b.is_live(1));
  EXPECT_FALSE(b.is_live(2));
}

TEST(coordinator_detection, a_coordinator_that_was_stopped_itself_judges_nobody_by_it) {
  bench b;
  b.serve();
  b.open();
  b.now += 10 * k_second;
  b.step(time_passed{});
  EXPECT_TRUE(b.is_live(0));
  EXPECT_EQ(b.view().sessions.size(), 1u);
}

TEST(coordinator_detection, a_start_that_was_stopped_routes_to_nobody_who_is_still_awaited) {
  bench b(3);
  serve_three(b);
  b.restart();
  b.connect("a");
  b.forget();
  b.now += 10 * k_second;
  b.lose_link("a");  // it gave this coordinator up, or died
  b.connect("b");
  b.connect("c");
  EXPECT_TRUE(b.all<publish_snapshot>().empty());
  b.connect("a");
  ASSERT_EQ(b.all<publish_snapshot>().size(), 1u);
  EXPECT_TRUE(b.is_live(0));

  b.restart();
  b.connect("a");
  b.now += 10 * k_second;
  b.lose_link("a");
  b.connect("b");
  b.connect("c");
  b.wait(b.options.rejoin_limit + 200 * k_millisecond);
  EXPECT_FALSE(b.is_live(0)) << "nobody is waited for for ever";
  EXPECT_TRUE(b.is_live(1));
}

// Just too short for anybody to notice; what the workers said meanwhile waits behind the clock.
TEST(coordinator_detection, a_short_stop_of_the_coordinator_is_nobodys_silence) {
  bench b(3);
  serve_three(b);
  b.wait(200 * k_millisecond);
  b.now += 60 * k_millisecond;
  b.say("b", control::leaving{});  // of another process: only the clock goes on
  b.forget();
  b.now += b.options.heartbeat_timeout - 10 * k_millisecond;
  b.step(time_passed{});
  EXPECT_TRUE(b.all<tell_suspicion>().empty());
  EXPECT_TRUE(b.view().losses.empty());
  EXPECT_TRUE(b.is_live(0) && b.is_live(1) && b.is_live(2));
  b.processes.at("b").beats = false;
  b.wait(b.options.heartbeat_timeout + 200 * k_millisecond);
  EXPECT_FALSE(b.is_live(1)) << "who is silent afterwards is found as ever";
}

TEST(coordinator_detection,
     workers_that_gave_a_stopped_coordinator_up_are_not_masked_while_they_return) {
  bench b(3);
  serve_three(b);
  b.wait(200 * k_millisecond);
  const epoch_number epoch = b.view().epoch;
  b.forget();
  b.now += 10 * k_second;
  for (const char* name : {"a", "b", "c"}) b.lose_link(name);  // what had waited in its mailbox
  b.wait(k_second);
  EXPECT_TRUE(b.all<publish_snapshot>().empty());
  for (const char* name : {"a", "b", "c"}) b.connect(name);
  b.wait(5 * k_second);
  EXPECT_TRUE(b.all<publish_snapshot>().empty());
  EXPECT_EQ(b.view().epoch, epoch);
  EXPECT_TRUE(b.view().losses.empty());
}

TEST(coordinator_detection, one_that_does_not_return_after_a_stop_is_lost_in_the_end) {
  bench b(3);
  serve_three(b);
  b.wait(200 * k_millisecond);
  b.now += 10 * k_second;
  for (const char* name : {"a", "b", "c"}) b.lose_link(name);
  for (const char* name : {"a", "b"}) b.connect(name);
  b.wait(b.options.rejoin_limit - 100 * k_millisecond);
  EXPECT_TRUE(b.is_live(2));
  b.wait(200 * k_millisecond);
  EXPECT_FALSE(b.is_live(2));
  b.lose_link("a");  // long after the stop a closed link counts at once
  EXPECT_FALSE(b.is_live(0));
}

TEST(coordinator_detection, one_that_beat_after_a_stop_is_lost_with_its_link) {
  bench b(3);
  serve_three(b);
  b.now += 10 * k_second;
  b.wait(300 * k_millisecond);
  b.lose_link("c");
  EXPECT_FALSE(b.is_live(2));
}

TEST(coordinator_detection, sources_are_told_to_avoid_one_that_is_awaited_after_a_stop) {
  bench b(3);
  serve_three(b);
  b.wait(200 * k_millisecond);
  b.forget();
  b.now += 10 * k_second;
  b.lose_link("c");  // dead, or on its way back
  ASSERT_EQ(b.all<tell_suspicion>().size(), 1u);
  const auto& told = b.all<tell_suspicion>().back().suspicion->workers;
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].incarnation, incarnation_of(b, "c"));
  EXPECT_TRUE(b.is_live(2));
  b.connect("c");
  EXPECT_TRUE(b.all<tell_suspicion>().back().suspicion->workers.empty());
}

TEST(coordinator_detection, an_old_beat_said_again_keeps_nobody_alive) {
  bench b(3);
  serve_three(b);
  b.wait(200 * k_millisecond);
  b.processes.at("c").beats = false;
  for (int i = 0; i < 8; ++i) {
    control::heartbeat old;
    old.incarnation = b.processes.at("c").hello.incarnation;
    old.sequence = 1;
    if (b.processes.at("c").link != 0) b.say("c", old);
    b.wait(100 * k_millisecond);
  }
  EXPECT_FALSE(b.is_live(2));
}

// --- suspicion ---

TEST(coordinator_detection, a_silent_worker_is_suspected_first_and_nobody_is_left_out_by_it) {
  bench b(3);
  serve_three(b);
  b.wait(200 * k_millisecond);
  const epoch_number epoch = b.view().epoch;
  b.forget();
  b.processes.at("c").beats = false;
  b.wait(300 * k_millisecond);
  const auto told = b.all<tell_suspicion>();
  ASSERT_EQ(told.size(), 1u);
  ASSERT_EQ(told[0].suspicion->workers.size(), 1u);
  EXPECT_EQ(told[0].suspicion->workers[0].incarnation, incarnation_of(b, "c"));
  EXPECT_TRUE(b.view().workers.at(2).suspected);
  EXPECT_TRUE(b.is_live(2));
  EXPECT_EQ(b.view().epoch, epoch);
  EXPECT_TRUE(b.all<publish_snapshot>().empty());

  b.processes.at("c").beats = true;  // it was only late
  b.wait(100 * k_millisecond);
  ASSERT_EQ(b.all<tell_suspicion>().size(), 2u);
  EXPECT_TRUE(b.all<tell_suspicion>()[1].suspicion->workers.empty());
  EXPECT_GT(b.all<tell_suspicion>()[1].suspicion->number, told[0].suspicion->number);
  EXPECT_EQ(b.view().epoch, epoch);
  EXPECT_TRUE(b.view().losses.empty());
}

TEST(coordinator_detection, a_suspicion_ends_with_the_snapshot_that_masks_and_not_before) {
  bench b(3);
  serve_three(b);
  b.wait(200 * k_millisecond);
  b.processes.at("c").beats = false;
  b.disk_answers = false;
  b.wait(700 * k_millisecond);  // given up, but the epoch is not durable yet
  EXPECT_TRUE(b.processes.at("c").cut);
  EXPECT_TRUE(b.is_live(2));
  EXPECT_EQ(b.all<tell_suspicion>().back().suspicion->workers.size(), 1u);
  b.disk_answers = true;
  b.acknowledge();
  EXPECT_FALSE(b.is_live(2));
  EXPECT_TRUE(b.all<tell_suspicion>().back().suspicion->workers.empty());
}

TEST(coordinator_detection, a_restarted_coordinator_gives_no_suspicion_the_number_of_an_older_one) {
  bench b(3);
  serve_three(b);
  b.processes.at("c").beats = false;
  b.wait(300 * k_millisecond);
  const auto first = b.all<tell_suspicion>().back().suspicion->number;
  b.restart();
  for (const char* name : {"a", "b", "c"}) b.connect(name);
  b.forget();
  b.wait(300 * k_millisecond);
  ASSERT_FALSE(b.all<tell_suspicion>().empty());
  EXPECT_GT(b.all<tell_suspicion>().back().suspicion->number, first);
}

// --- what sources report ---

TEST(coordinator_detection, reports_make_it_probe_and_never_evict) {
  bench b(3);
  serve_three(b);
  const session_grant g = b.open();
  b.wait(200 * k_millisecond);
  b.forget();
  const epoch_number epoch = b.view().epoch;
  for (int i = 0; i < 50; ++i) {
    b.step(report_on_c(b, g));
    b.step(renew_session{g.session, incarnation_id(7001)});
    b.wait(100 * k_millisecond);
  }
  EXPECT_TRUE(b.is_live(2));
  EXPECT_EQ(b.view().epoch, epoch);
  EXPECT_EQ(b.view().late_reports, 50u);
  const auto probes = b.heard_by<control::probe>("c");
  EXPECT_EQ(probes.size(), 50u);
  EXPECT_EQ(probes.at(0), (control::probe{epoch, incarnation_of(b, "c")}));
  EXPECT_TRUE(b.heard_by<control::probe>("a").empty());
}

TEST(coordinator_detection, many_reports_at_once_are_one_probe) {
  bench b(3);
  serve_three(b);
  const session_grant g = b.open();
  b.wait(200 * k_millisecond);
  for (int i = 0; i < 50; ++i) b.step(report_on_c(b, g));
  EXPECT_EQ(b.heard_by<control::probe>("c").size(), 1u);
}

TEST(coordinator_detection, a_probed_worker_that_does_not_answer_is_suspected_sooner) {
  bench b(3);
  b.options.heartbeat_timeout = k_second;  // silence alone: after half of it
  serve_three(b);
  const session_grant g = b.open();
  b.wait(200 * k_millisecond);
  b.processes.at("c").beats = false;
  b.step(report_on_c(b, g));
  b.wait(200 * k_millisecond);
  EXPECT_FALSE(b.view().workers.at(2).suspected);
  b.wait(100 * k_millisecond);
  EXPECT_TRUE(b.view().workers.at(2).suspected);
  EXPECT_TRUE(b.is_live(2));
}

TEST(coordinator_detection, reports_of_strangers_and_about_earlier_processes_are_ignored) {
  bench b(3);
  serve_three(b);
  const session_grant g = b.open();
  late_report foreign = report_on_c(b, g);
  foreign.incarnation = incarnation_id(1);
  b.step(foreign);
  late_report earlier = report_on_c(b, g);
  earlier.worker_incarnation = incarnation_id(1);
  b.step(earlier);
  EXPECT_TRUE(b.heard_by<control::probe>("c").empty());
  EXPECT_EQ(b.view().late_reports, 0u);
}

// --- losses ---

TEST(coordinator_detection, a_lost_device_is_believed_at_once) {
  bench b(3);
  serve_three(b);
  control::heartbeat m;
  m.incarnation = incarnation_of(b, "c");
  m.sequence = 1;
  m.device = control::device_state::lost;
  b.say("c", m);
  EXPECT_FALSE(b.is_live(2));
  EXPECT_TRUE(b.processes.at("c").cut);
  EXPECT_EQ(b.view().losses.at(0).cause, loss_cause::device);
  EXPECT_EQ(b.view().gone_by_cause, (std::array<std::uint64_t, 5>{0, 0, 0, 1, 0}));
  b.say("b", control::leaving{incarnation_of(b, "b")});
  b.lose_link("b");
  EXPECT_EQ(b.view().gone_by_cause, (std::array<std::uint64_t, 5>{0, 0, 0, 1, 0})) << "it said so";
  b.lose_link("a");
  EXPECT_EQ(b.view().gone_by_cause, (std::array<std::uint64_t, 5>{1, 0, 0, 1, 0}));
}

TEST(coordinator_detection, a_device_that_is_lost_counts_whatever_its_worker_said_first) {
  bench b(3);
  serve_three(b);
  b.say("c", control::leaving{incarnation_of(b, "c")});
  control::heartbeat m;
  m.incarnation = incarnation_of(b, "c");
  m.sequence = 1;
  m.device = control::device_state::lost;
  b.say("c", m);
  EXPECT_EQ(b.view().gone_by_cause, (std::array<std::uint64_t, 5>{0, 0, 0, 1, 0}));
}

TEST(coordinator_detection, the_view_keeps_how_long_a_loss_took_to_notice_and_to_mend) {
  bench b(3);
  serve_three(b);
  b.wait(200 * k_millisecond);
  b.processes.at("c").beats = false;
  b.disk_answers = false;
  b.wait(700 * k_millisecond);
  ASSERT_EQ(b.view().losses.size(), 1u);
  const loss_view before = b.view().losses[0];
  EXPECT_EQ(before.number, 1u);
  EXPECT_EQ(before.worker, "c");
  EXPECT_EQ(before.cause, loss_cause::silent);
  EXPECT_EQ(before.detection, 600 * k_millisecond);  // ticks of 100 ms here
  EXPECT_EQ(before.recovery, 0u);
  b.disk_answers = true;
  b.acknowledge();
  EXPECT_EQ(b.view().losses[0].recovery, 700 * k_millisecond);
  b.lose_link("b");
  EXPECT_EQ(b.view().losses.at(1).number, 2u);
  EXPECT_EQ(b.view().losses.at(1).cause, loss_cause::link_closed);
}

TEST(coordinator_detection, one_that_leaves_in_good_order_is_no_loss) {
  bench b(3);
  serve_three(b);
  b.say("c", control::leaving{incarnation_of(b, "c")});
  b.lose_link("c");
  EXPECT_FALSE(b.is_live(2));
  EXPECT_TRUE(b.view().losses.empty());
}

// --- fencing ---

TEST(coordinator_detection, what_a_fenced_worker_says_on_its_old_link_is_refused_and_counted) {
  bench b(3);
  serve_three(b);
  b.wait(200 * k_millisecond);
  const link_number old = b.processes.at("c").link;
  b.processes.at("c").beats = false;
  b.wait(700 * k_millisecond);
  const tier_view fenced = b.view();
  b.forget();
  control::heartbeat m;
  m.incarnation = incarnation_of(b, "c");
  m.sequence = 1000;
  m.engine_tick = 1000;
  m.epoch = fenced.epoch;
  b.step(worker_message{old, m});
  b.step(worker_message{
      old, control::prepared{
               fenced.epoch, fenced.generation, fenced.plan, incarnation_of(b, "c"), {}, 0}});
  b.step(worker_message{old, control::leaving{incarnation_of(b, "c")}});
  EXPECT_EQ(b.view().stale_commands_refused, fenced.stale_commands_refused + 3);
  EXPECT_FALSE(b.is_live(2));
  EXPECT_TRUE(b.all<publish_snapshot>().empty());

  // It comes in as a new member: checked, and by an epoch of its own.
  b.connect("c");
  EXPECT_TRUE(b.is_live(2));
  EXPECT_GT(b.view().epoch, fenced.epoch);
}

}  // namespace
}  // namespace moetier::coordinator
