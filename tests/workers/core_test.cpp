// The worker's control core, rule by rule.

#include <gtest/gtest.h>

#include "tests/workers/core_bench.hpp"

namespace moetier::workers {
namespace {

// --- link ---

TEST(worker_core, says_hello_first_on_every_link_with_what_it_holds) {
  bench b;
  b.serve();
  b.attach(4);
  b.step(link_lost{});
  b.seen.clear();
  b.step(link_up{});
  ASSERT_EQ(b.said<control::hello>().size(), 1u);
  const auto h = b.said<control::hello>()[0];
  EXPECT_EQ(h.highest_epoch, epoch_number(1));
  ASSERT_EQ(h.held.size(), 1u);
  EXPECT_EQ(h.held[0].state, control::generation_state::serving);
  EXPECT_EQ(h.held_checksums, (std::vector<std::uint64_t>{21, 22}));
  ASSERT_EQ(h.sources.size(), 1u);
  EXPECT_EQ(h.sources[0].source, source_id(4));
}

TEST(worker_core, says_hello_again_while_nobody_answers) {
  bench b;
  b.start();
  b.step(link_up{});
  b.now += b.options.heartbeat_timeout;
  b.step(time_passed{});
  EXPECT_EQ(b.said<control::hello>().size(), 2u);
}

TEST(worker_core, a_refused_join_drops_the_link_and_a_refused_checksum_ends_the_process) {
  bench b;
  b.start();
  b.step(link_up{});
  b.tell(control::refused{control::refused::why::join, {}, {}, k_self, "layout is x"});
  EXPECT_EQ(b.all<drop_link>().size(), 1u);
  EXPECT_TRUE(b.all<stopped>().empty());
  b.tell(control::refused{control::refused::why::load_failed, {}, {}, incarnation_id(1), "other"});
  EXPECT_TRUE(b.all<stopped>().empty()) << "meant for an earlier process";
  b.tell(control::refused{control::refused::why::load_failed, {}, {}, k_self, "bytes differ"});
  ASSERT_EQ(b.all<stopped>().size(), 1u);
  EXPECT_TRUE(b.all<stopped>()[0].failed);
}

TEST(worker_core, serves_on_while_the_coordinator_is_away) {
  bench b;
  b.serve();
  b.step(link_lost{});
  b.now += 60 * k_second;
  b.step(time_passed{});
  EXPECT_TRUE(b.summary().serving);
  EXPECT_TRUE(b.seen.empty());
}

TEST(worker_core, a_coordinator_that_falls_silent_is_given_up_with_its_link) {
  bench b;
  b.join();
  b.now += 2 * b.options.heartbeat_timeout;
  b.step(time_passed{});
  EXPECT_EQ(b.all<drop_link>().size(), 1u);
}

// --- R1, R2 ---

TEST(worker_core, refuses_a_command_of_an_older_epoch_and_changes_nothing) {
  bench b;
  b.join(5);
  b.tell(b.prepare_of(4));
  EXPECT_TRUE(b.all<load_plan>().empty());
  ASSERT_EQ(b.said<control::refused>().size(), 1u);
  EXPECT_EQ(b.said<control::refused>()[0].cause, control::refused::why::stale_epoch);
  EXPECT_EQ(b.said<control::refused>()[0].epoch, epoch_number(5));
  b.tell(control::attach_source{epoch_number(4), bench::source(1)});
  b.tell(control::detach_source{epoch_number(4), source_id(1), incarnation_id(9)});
  EXPECT_TRUE(b.all<attach_source>().empty());
  EXPECT_EQ(b.summary().stale_commands_refused, 3u);
  EXPECT_EQ(b.summary().epoch, epoch_number(5));
}

TEST(worker_core, a_heartbeat_answer_raises_the_epoch_and_never_lowers_it) {
  bench b;
  b.join(5);
  b.tell(control::heartbeat_answer{1, epoch_number(8), {}});
  b.tell(control::heartbeat_answer{1, epoch_number(6), {}});
  EXPECT_EQ(b.summary().epoch, epoch_number(8));
}

TEST(worker_core, a_log_level_is_obeyed_when_it_changes_and_not_with_every_beat) {
  bench b;
  b.join();
  const auto told = [&b](control::log_threshold level) {
    b.tell(control::heartbeat_answer{1, epoch_number(8), {}, level});
    return b.all<set_log_level>().size();
  };
  EXPECT_EQ(told(control::log_threshold::as_configured), 0u);
  EXPECT_EQ(told(control::log_threshold::debug), 1u);
  EXPECT_EQ(told(control::log_threshold::debug), 1u);
  EXPECT_EQ(b.all<set_log_level>()[0].level, control::log_threshold::debug);
  EXPECT_EQ(told(control::log_threshold::as_configured), 2u);
}

TEST(worker_core, a_command_for_an_earlier_process_is_dropped) {
  bench b;
  b.join();
  auto p = b.prepare_of(1);
  p.incarnation = incarnation_id(1);
  b.tell(p);
  EXPECT_TRUE(b.seen.empty());
  EXPECT_EQ(b.summary().stale_commands_refused, 1u);
}

// --- plans ---

TEST(worker_core, says_prepared_only_when_every_byte_is_checked) {
  bench b;
  b.join();
  b.tell(b.prepare_of(1));
  ASSERT_EQ(b.all<load_plan>().size(), 1u);
  EXPECT_EQ(b.all<load_plan>()[0].self, worker_id(1));
  b.tell(b.prepare_of(1));
  EXPECT_TRUE(b.said<control::prepared>().empty());
  b.load();
  ASSERT_EQ(b.said<control::prepared>().size(), 1u);
  EXPECT_EQ(b.said<control::prepared>()[0].checksums, (std::vector<std::uint64_t>{21, 22}));
  EXPECT_EQ(b.all<load_plan>().size(), 1u) << "a repeat loads nothing twice";
}

TEST(worker_core, a_repeated_prepare_is_answered_with_its_own_epoch) {
  bench b;
  b.join();
  b.tell(b.prepare_of(1));
  b.load();
  b.tell(b.prepare_of(3));
  ASSERT_EQ(b.said<control::prepared>().size(), 2u);
  EXPECT_EQ(b.said<control::prepared>()[1].epoch, epoch_number(3));
}

TEST(worker_core, another_plan_replaces_one_that_was_never_committed) {
  bench b;
  b.join();
  b.tell(b.prepare_of(1, 1, 7));
  b.tell(b.prepare_of(2, 1, 8));
  ASSERT_EQ(b.all<cancel_load>().size(), 1u);
  EXPECT_EQ(b.all<cancel_load>()[0].plan, plan_hash(7));
  b.load(1, 7);  // too late
  EXPECT_TRUE(b.said<control::prepared>().empty());
  b.load(1, 8);
  EXPECT_EQ(b.said<control::prepared>().size(), 1u);
}

TEST(worker_core, a_placement_without_a_place_for_it_or_of_other_size_is_refused) {
  bench b;
  b.join();
  b.tell(b.prepare_of(1, 1, 7, "someone"));
  EXPECT_EQ(b.said<control::refused>().back().text, "the placement has no slots for this worker");
  auto broken = b.prepare_of(1);
  broken.placement.pop_back();
  b.tell(broken);
  EXPECT_EQ(b.said<control::refused>().back().cause, control::refused::why::mismatch);
  bench other;
  other.options.slots = 3;
  other.join();
  other.tell(other.prepare_of(1));
  EXPECT_EQ(other.said<control::refused>().back().text,
            "the placement gives 2 slots; this worker has 3");
}

TEST(worker_core, a_failed_load_is_refused_and_leaves_nothing_to_commit) {
  bench b;
  b.join();
  b.tell(b.prepare_of(1));
  b.step(plan_load_failed{generation_number(1), plan_hash(7),
                          make_error(reason::file_unreadable, "model", "gone")});
  EXPECT_EQ(b.said<control::refused>().at(0).cause, control::refused::why::load_failed);
  b.tell(b.commit_of(1));
  EXPECT_EQ(b.said<control::refused>().at(1).cause, control::refused::why::unknown_generation);
  EXPECT_FALSE(b.summary().serving);
}

TEST(worker_core, commit_activates_exactly_what_was_prepared_or_nothing) {
  bench b;
  b.join();
  b.tell(b.commit_of(1));
  EXPECT_EQ(b.said<control::refused>().at(0).cause, control::refused::why::unknown_generation);
  b.tell(b.prepare_of(1));
  b.tell(b.commit_of(1));  // not loaded yet
  EXPECT_EQ(b.said<control::refused>().at(1).cause, control::refused::why::unknown_generation);
  b.load();
  b.tell(b.commit_of(1, 1, 8));
  EXPECT_EQ(b.said<control::refused>().at(2).cause, control::refused::why::mismatch);
  EXPECT_TRUE(b.all<serve_generation>().empty());
  b.tell(b.commit_of(1));
  ASSERT_EQ(b.all<serve_generation>().size(), 1u);
  EXPECT_EQ(b.all<serve_generation>()[0].first_slot, 2u);
  b.tell(b.commit_of(1));
  EXPECT_EQ(b.said<control::committed>().size(), 2u);
  EXPECT_EQ(b.all<serve_generation>().size(), 1u);
}

TEST(worker_core, an_abort_frees_what_was_prepared_and_never_what_serves) {
  bench b;
  b.join();
  b.tell(b.prepare_of(1));
  b.load();
  b.tell(control::abort_plan{epoch_number(1), generation_number(1), plan_hash(7), k_self});
  EXPECT_EQ(b.all<cancel_load>().size(), 1u);
  b.tell(b.commit_of(1));
  EXPECT_FALSE(b.summary().serving);
  bench c;
  c.serve();
  c.tell(control::abort_plan{epoch_number(1), generation_number(1), plan_hash(7), k_self});
  EXPECT_TRUE(c.summary().serving);
  EXPECT_TRUE(c.seen.empty());
}

TEST(worker_core, an_older_generation_is_released_once_and_only_empty_pages_are_written) {
  bench b;
  b.serve();
  b.tell(b.prepare_of(2, 2, 8));
  b.load(2, 8);
  b.tell(b.commit_of(2, 2, 8));
  EXPECT_EQ(b.summary().generation, generation_number(2));
  b.tell(b.prepare_of(2, 3, 9));
  EXPECT_EQ(b.said<control::refused>().back().cause, control::refused::why::busy);
  b.tell(control::release{epoch_number(2), generation_number(2), k_self});
  ASSERT_EQ(b.all<release_pages>().size(), 1u);
  EXPECT_TRUE(b.said<control::released>().empty()) << "a batch may still be in flight";
  b.step(pages_released{generation_number(2)});
  EXPECT_EQ(b.said<control::released>().size(), 1u);
  b.tell(control::release{epoch_number(2), generation_number(2), k_self});
  EXPECT_EQ(b.said<control::released>().size(), 2u);
  EXPECT_EQ(b.all<release_pages>().size(), 1u);
  b.tell(control::release{epoch_number(2), generation_number(3), k_self});
  EXPECT_EQ(b.said<control::refused>().back().cause, control::refused::why::unknown_generation);
}

TEST(worker_core, a_serving_generation_answers_a_repeated_prepare_with_its_checksums) {
  bench b;
  b.serve();
  b.tell(b.prepare_of(4));
  ASSERT_EQ(b.said<control::prepared>().size(), 1u);
  EXPECT_EQ(b.said<control::prepared>()[0].epoch, epoch_number(4));
  EXPECT_TRUE(b.all<load_plan>().empty());
  b.tell(b.prepare_of(4, 1, 8));
  EXPECT_EQ(b.said<control::refused>().at(0).cause, control::refused::why::mismatch);
}

// --- sources ---

TEST(worker_core, an_attach_is_answered_by_the_engine_and_a_repeat_at_once) {
  bench b;
  b.serve();
  b.tell(control::attach_source{epoch_number(1), bench::source(4)});
  EXPECT_TRUE(b.said<control::source_attached>().empty());
  b.step(source_attach_done{source_id(4), incarnation_id(9), true, ""});
  ASSERT_EQ(b.said<control::source_attached>().size(), 1u);
  b.tell(control::attach_source{epoch_number(1), bench::source(4)});
  EXPECT_EQ(b.said<control::source_attached>().size(), 2u);
  EXPECT_EQ(b.all<attach_source>().size(), 1u);
}

TEST(worker_core, a_newer_incarnation_replaces_a_source_and_a_late_detach_leaves_it) {
  bench b;
  b.serve();
  b.attach(4, 9);
  b.attach(4, 10);
  ASSERT_EQ(b.all<detach_source>().size(), 1u);
  EXPECT_EQ(b.all<detach_source>()[0].incarnation, incarnation_id(9));
  b.tell(control::detach_source{epoch_number(1), source_id(4), incarnation_id(9)});
  EXPECT_EQ(b.summary().sources, 1u);
  b.tell(control::detach_source{epoch_number(1), source_id(4), incarnation_id(10)});
  EXPECT_EQ(b.summary().sources, 0u);
}

TEST(worker_core, a_late_attach_of_an_older_session_does_not_take_a_place_from_a_newer_one) {
  bench b;
  b.serve();
  control::source_attachment newer = bench::source(4, 10);
  newer.session = session_id(2);
  b.tell(control::attach_source{epoch_number(1), newer});
  b.tell(control::attach_source{epoch_number(1), bench::source(4, 9)});
  EXPECT_EQ(b.all<attach_source>().size(), 1u);
  EXPECT_TRUE(b.all<detach_source>().empty());
  EXPECT_EQ(b.summary().stale_commands_refused, 1u);
}

TEST(worker_core, a_session_that_was_detached_is_refused_for_good) {
  bench b;
  b.serve();
  b.attach(4);
  b.tell(control::detach_source{epoch_number(1), source_id(4), incarnation_id(9)});
  b.seen.clear();
  b.tell(control::attach_source{epoch_number(2), bench::source(4)});
  ASSERT_EQ(b.said<control::source_attached>().size(), 1u);
  EXPECT_FALSE(b.said<control::source_attached>()[0].accepted);
  EXPECT_TRUE(b.said<control::source_attached>()[0].gone);
  EXPECT_TRUE(b.all<attach_source>().empty());
  control::source_attachment next = bench::source(4, 10);
  next.session = session_id(2);
  b.tell(control::attach_source{epoch_number(2), next});
  EXPECT_EQ(b.all<attach_source>().size(), 1u) << "the place itself is free";
}

TEST(worker_core, a_source_that_never_was_in_the_engine_may_be_attached_again) {
  bench b;
  b.serve();
  b.tell(control::attach_source{epoch_number(1), bench::source(4)});
  b.tell(control::detach_source{epoch_number(1), source_id(4), incarnation_id(9)});
  b.tell(control::attach_source{epoch_number(1), bench::source(4)});
  EXPECT_EQ(b.all<attach_source>().size(), 2u);
}

TEST(worker_core, a_source_that_the_engine_refuses_is_not_kept) {
  bench b;
  b.serve();
  b.tell(control::attach_source{epoch_number(1), bench::source(4)});
  b.step(source_attach_done{source_id(4), incarnation_id(9), false, "no memory"});
  EXPECT_FALSE(b.said<control::source_attached>().at(0).accepted);
  EXPECT_EQ(b.summary().sources, 0u);
  b.tell(control::attach_source{epoch_number(1), bench::source(1024)});
  EXPECT_FALSE(b.said<control::source_attached>().at(1).accepted) << "the table is bounded";
}

TEST(worker_core, a_source_that_no_return_can_reach_is_given_up_for_good) {
  bench b;
  b.serve();
  b.attach(4);
  b.seen.clear();
  b.step(source_attach_done{source_id(4), incarnation_id(9), false, "unreached", true});
  ASSERT_EQ(b.said<control::source_attached>().size(), 1u);
  EXPECT_TRUE(b.said<control::source_attached>()[0].gone);
  EXPECT_EQ(b.all<detach_source>().size(), 1u);
  EXPECT_EQ(b.summary().sources, 0u);
  b.tell(control::attach_source{epoch_number(2), bench::source(4)});
  EXPECT_TRUE(b.all<attach_source>().empty());
  EXPECT_TRUE(b.said<control::source_attached>().at(1).gone);
}

// --- beats ---

TEST(worker_core, beats_at_every_interval_with_the_engines_tick) {
  bench b;
  b.serve();
  engine_progress p;
  p.tick = 41;
  p.oldest_batch_ns = 17;
  b.step(p);
  b.step(time_passed{});
  b.now += b.options.heartbeat_interval / 2;
  b.step(time_passed{});
  b.now += b.options.heartbeat_interval / 2;
  b.step(time_passed{});
  const auto beats = b.said<control::heartbeat>();
  ASSERT_EQ(beats.size(), 2u);
  EXPECT_EQ(beats[1].sequence, beats[0].sequence + 1);
  EXPECT_EQ(beats[0].engine_tick, 41u);
  EXPECT_EQ(beats[0].oldest_batch_ns, 17u);
  EXPECT_EQ(beats[0].generation, generation_number(1));
}

// Each beat of an engine that turned since the one before shows it, whatever sources report.
TEST(worker_core, probes_make_nobody_look_stuck_who_is_at_work) {
  bench b;
  b.serve();
  engine_progress at_work;
  b.seen.clear();
  for (std::uint64_t turn = 1; turn <= 20; ++turn) {
    b.now += b.options.heartbeat_interval / 2;
    b.tell(control::probe{epoch_number(1), k_self});
    b.now += b.options.heartbeat_interval - b.options.heartbeat_interval / 2;
    at_work.tick = turn;
    at_work.oldest_batch_ns = k_millisecond;
    b.step(at_work);
    b.step(time_passed{});
  }
  const auto beats = b.said<control::heartbeat>();
  EXPECT_GE(beats.size(), 20u) << "and the probes displace no beat";
  for (std::size_t i = 1; i < beats.size(); ++i) {
    EXPECT_TRUE(beats[i].oldest_batch_ns == 0 || beats[i].engine_tick != beats[i - 1].engine_tick);
  }
}

TEST(worker_core, a_probe_is_answered_by_a_beat_at_once) {
  bench b;
  b.serve();
  b.step(time_passed{});
  b.seen.clear();
  b.now += b.options.heartbeat_interval / 10;
  b.tell(control::probe{epoch_number(1), k_self});
  ASSERT_EQ(b.said<control::heartbeat>().size(), 1u);
  EXPECT_EQ(b.said<control::heartbeat>()[0].sequence, 2u);
  b.tell(control::probe{epoch_number(1), incarnation_id(1)});  // meant for an earlier process
  b.tell(control::probe{epoch_number(0), k_self});             // from an earlier coordinator
  EXPECT_EQ(b.said<control::heartbeat>().size(), 1u);
  EXPECT_EQ(b.summary().stale_commands_refused, 2u);
}

TEST(worker_core, tells_a_lost_device_in_its_beat) {
  bench b;
  b.serve();
  engine_progress p;
  p.device = control::device_state::lost;
  b.step(p);
  b.step(time_passed{});
  EXPECT_EQ(b.said<control::heartbeat>().at(0).device, control::device_state::lost);
}

TEST(worker_core, its_lease_runs_from_the_sending_of_the_beat_that_was_answered) {
  bench b;
  b.serve();
  b.step(time_passed{});  // beat 1
  const time_ns sent = b.now;
  for (int i = 1; i <= 4; ++i) {
    b.now += b.options.heartbeat_interval;
    b.step(time_passed{});
  }
  b.tell(control::heartbeat_answer{1, epoch_number(1), generation_number(1)});  // late
  b.now = sent + b.options.heartbeat_timeout - 1;
  b.step(time_passed{});
  EXPECT_TRUE(b.summary().leased);
  b.now += 1;
  b.step(time_passed{});
  EXPECT_FALSE(b.summary().leased);
}

TEST(worker_core, cut_from_the_coordinator_it_is_not_ready_and_serves_on_until_answered_again) {
  bench b;
  b.serve();
  b.step(time_passed{});
  b.tell(control::heartbeat_answer{1, epoch_number(1), generation_number(1)});
  for (int i = 0; i < 6; ++i) {  // beats go out, no answer comes
    b.now += b.options.heartbeat_interval;
    b.step(time_passed{});
  }
  EXPECT_FALSE(b.summary().leased);
  EXPECT_TRUE(b.summary().joined);
  EXPECT_TRUE(b.summary().serving);
  b.tell(control::heartbeat_answer{7, epoch_number(1), generation_number(1)});
  b.step(time_passed{});
  EXPECT_TRUE(b.summary().leased);
}

TEST(worker_core, reports_load_once_a_second_while_it_changes) {
  bench b;
  b.serve();
  const auto turn = [&](std::uint64_t rows) {
    engine_progress p;
    p.rows_total = rows;
    p.counted_generation = generation_number(1);
    p.counts = {rows, 0};
    b.step(p);
    b.now += b.options.heartbeat_interval;
    b.tell(control::heartbeat_answer{1, epoch_number(1), generation_number(1)});
    b.step(time_passed{});
  };
  for (std::uint64_t i = 1; i <= 20; ++i) turn(i);
  EXPECT_EQ(b.said<control::load_report>().size(), 2u);
  EXPECT_EQ(b.said<control::load_report>()[1].counts[0],
            b.said<control::load_report>()[1].rows_total);
}

TEST(worker_core, a_later_word_without_counts_does_not_take_back_those_told) {
  bench b;
  b.serve();
  const auto step = [&](const engine_progress& p) {
    b.step(p);
    b.now += b.options.heartbeat_interval;
    b.tell(control::heartbeat_answer{1, epoch_number(1), generation_number(1)});
    b.step(time_passed{});
  };
  engine_progress first;
  first.rows_total = 3;
  first.counted_generation = generation_number(1);
  first.counts = {3, 0};
  step(first);
  engine_progress more = first;
  more.rows_total = 7;
  more.counts = {6, 1};
  step(more);  // within the second: its report waits
  engine_progress quiet;
  quiet.rows_total = 7;
  for (int i = 0; i < 20; ++i) step(quiet);
  ASSERT_FALSE(b.said<control::load_report>().empty());
  EXPECT_EQ(b.said<control::load_report>().back().counts, (std::vector<std::uint64_t>{6, 1}));
}

// --- the end ---

TEST(worker_core, leaves_by_notice_then_drain_then_end) {
  bench b;
  b.serve();
  b.step(shut_down{});
  EXPECT_EQ(b.said<control::leaving>().size(), 1u);
  EXPECT_TRUE(b.all<drain_engine>().empty()) << "sources are told first";
  b.now += 3 * b.options.heartbeat_interval;
  b.step(time_passed{});
  EXPECT_EQ(b.all<drain_engine>().size(), 1u);
  b.step(engine_drained{});
  ASSERT_EQ(b.all<stopped>().size(), 1u);
  EXPECT_FALSE(b.all<stopped>()[0].failed);
}

TEST(worker_core, says_that_its_device_is_lost_before_it_leaves) {
  bench b;
  b.serve();
  const std::size_t beats = b.said<control::heartbeat>().size();
  b.step(shut_down{.device_lost = true});
  ASSERT_EQ(b.said<control::heartbeat>().size(), beats + 1);
  EXPECT_EQ(b.said<control::heartbeat>().back().device, control::device_state::lost);
  const auto sent = b.all<send>();
  EXPECT_TRUE(std::holds_alternative<control::leaving>(sent.back().body));
}

TEST(worker_core, an_engine_that_never_drains_ends_at_the_limit) {
  bench b;
  b.serve();
  b.step(shut_down{});
  EXPECT_TRUE(b.summary().leased);
  b.now += b.options.drain_limit;
  b.step(time_passed{});
  EXPECT_EQ(b.all<stopped>().size(), 1u);
  EXPECT_FALSE(b.summary().leased);
}

TEST(worker_core, without_a_coordinator_it_drains_at_once_and_does_not_join_again) {
  bench b;
  b.serve();
  b.step(link_lost{});
  b.step(shut_down{});
  EXPECT_EQ(b.all<drain_engine>().size(), 1u);
  b.step(link_up{});
  EXPECT_TRUE(b.said<control::hello>().empty());
}

}  // namespace
}  // namespace moetier::workers
