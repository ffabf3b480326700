// Sessions: every token is answered exactly once, whatever happens to workers and coordinator.

#include <gtest/gtest.h>

#include "tests/coordinator/core_bench.hpp"

namespace moetier::coordinator {
namespace {

std::string text_of(const bench& b) { return b.all<answer_session>().back().grant.error().text; }

TEST(coordinator_sessions, a_grant_carries_the_snapshot_and_the_limits_in_force) {
  bench b;
  b.serve();
  const session_grant g = b.open();
  EXPECT_EQ(g.session, session_id(1));
  EXPECT_EQ(g.tokens_max, 4096u);
  EXPECT_EQ(g.top_k, 2u);
  EXPECT_EQ(g.lease, k_second);
  EXPECT_EQ(g.snapshot, b.snapshot());
  EXPECT_EQ(b.all<answer_session>().size(), 1u);
}

TEST(coordinator_sessions, opening_before_anything_is_served_says_what_lacks) {
  bench b(3);
  b.start();
  b.step(open_session{1, {}});
  EXPECT_EQ(text_of(b), "the tier is not ready: waiting for 3 of 3 workers");
  EXPECT_GT(b.all<answer_session>().back().grant.error().retry_after_ns, 0u);
}

// Names of workers, what their machines lack, what their memory holds: the operator's alone.
TEST(coordinator_sessions, why_a_plan_cannot_be_made_is_told_to_the_operator_and_not_to_clients) {
  const auto told = [](auto spoil, const std::string& detail) {
    bench b;
    b.start();
    b.join("a", 11);
    spoil(b.add("b", 12));
    b.connect("b");
    const auto reasons = b.view().not_ready_reasons;
    EXPECT_NE(reasons.at(0).find(detail), std::string::npos) << reasons.at(0);
    b.step(open_session{1, {}});
    return text_of(b);
  };
  const std::string fixed =
      "the tier is not ready: its first plan cannot be made; the operator's log says why";
  EXPECT_EQ(told(
                [](bench::process& b) {
                  auto odd = toy::cpu_environment();
                  odd.numerics_combine = 2;
                  b.hello.environment = toy::environment_document(odd);
                },
                "numerics_combine is 1 on a, 2 on b"),
            fixed);
  EXPECT_EQ(told([](bench::process& b) { b.spoil = 5; }, "bytes of workers a and b differ"), fixed);
}

TEST(coordinator_sessions, each_wish_beyond_a_limit_is_refused_with_its_numbers) {
  bench b;
  b.serve();
  const auto refusal = [&](auto change) {
    session_request r;
    change(r);
    b.step(open_session{1, r});
    const auto answer = b.all<answer_session>().back();
    return answer.grant ? std::string("granted") : answer.grant.error().text;
  };
  EXPECT_EQ(refusal([](auto& r) { r.tokens_max = 4097; }), "tokens_max is 4097; at most 4096");
  EXPECT_EQ(refusal([](auto& r) { r.tokens_max = 4096; }), "granted");
  EXPECT_EQ(refusal([](auto& r) { r.micro_batches = 0; }), "micro_batches is 0; allowed: 1 to 4");
  EXPECT_EQ(refusal([](auto& r) { r.micro_batches = 5; }), "micro_batches is 5; allowed: 1 to 4");
  EXPECT_EQ(refusal([](auto& r) { r.top_k = 3; }), "top_k is 3; at most 2");
  EXPECT_EQ(refusal([](auto& r) { r.return_mode = 2; }),
            "return_mode is 2; allowed: partial or exact");
  EXPECT_EQ(refusal([](auto& r) { r.return_dtype = dtype::i64; }),
            "return_dtype has dtype i64; allowed: f32, bf16, f16");
  EXPECT_EQ(refusal([](auto& r) { r.tenant = "a\nb"; }),
            "tenant is not a name; allowed: 1 to 64 printable ASCII characters");
  EXPECT_EQ(refusal([](auto& r) { r.model_fingerprint = 1; }),
            "the model's fingerprint is 0000000000000001; the tier serves 000000000000f00d");
  EXPECT_EQ(b.all<answer_session>().back().grant.error().code, status::model_mismatch);
}

TEST(coordinator_sessions, the_limit_of_sessions_and_of_sources_is_overload_not_an_error) {
  bench b;
  b.options.sessions_max = 2;
  b.serve();
  b.open(1);
  const session_grant second = b.open(2);
  b.step(open_session{3, {}});
  EXPECT_EQ(text_of(b), "no credit: all 2 sessions are in use");
  EXPECT_EQ(b.all<answer_session>().back().grant.error().code, status::overloaded);
  b.step(close_session{4, second.session, incarnation_id(7002)});
  EXPECT_EQ(b.open(5).session, session_id(3));

  bench few;
  few.options.sources_max = 1;
  few.serve();
  few.open(1);
  few.step(open_session{2, {}});
  EXPECT_EQ(text_of(few), "no credit: all 1 sources are in use");
}

TEST(coordinator_sessions, session_ids_are_never_reused_across_restarts_and_rarely_written) {
  bench b;
  b.options.sessions_max = 500;
  b.options.sources_max = 500;
  b.serve();
  b.forget();
  std::uint32_t last = 0;
  for (request_token t = 1; t <= 200; ++t) {
    const auto id = b.open(t).session.value;
    EXPECT_GT(id, last);
    last = id;
  }
  EXPECT_LE(b.all<write_record>().size(), 4u);
  b.restart();
  b.connect("a");
  b.connect("b");
  EXPECT_GT(b.open(201).session.value, last);
}

TEST(coordinator_sessions, an_open_waits_for_a_reserved_id_and_is_answered_once) {
  bench b;
  b.options.sessions_max = 200;
  b.options.sources_max = 200;
  b.serve();
  b.disk_answers = false;
  for (request_token t = 1; t <= 70; ++t) b.step(open_session{t, {}});
  EXPECT_EQ(b.all<answer_session>().size(), 64u);
  b.acknowledge();
  EXPECT_EQ(b.all<answer_session>().size(), 70u);
}

TEST(coordinator_sessions, nobody_waits_for_ids_that_a_full_disk_does_not_give) {
  bench b;
  b.options.sessions_max = 200;
  b.options.sources_max = 200;
  b.serve();
  b.disk_answers = false;
  for (request_token t = 1; t <= 65; ++t) b.step(open_session{t, {}});
  EXPECT_EQ(b.all<answer_session>().size(), 64u);
  b.acknowledge(false, "durable state: writing a record: No space left on device");
  b.step(open_session{66, {}});
  const auto answers = b.all<answer_session>();
  ASSERT_EQ(answers.size(), 66u);
  for (const std::size_t late : {64u, 65u}) {
    ASSERT_FALSE(answers[late].grant.has_value());
    EXPECT_EQ(answers[late].grant.error().text,
              "the tier is not ready: the durable record cannot be written");
    EXPECT_EQ(answers[late].grant.error().retry_after_ns, k_second);
  }
  b.wait(1100 * k_millisecond);
  b.disk_answers = true;
  b.acknowledge();
  b.open(67);
}

// --- attach ---

TEST(coordinator_sessions, an_attach_is_answered_when_every_live_worker_has_it) {
  bench b;
  b.serve();
  b.processes.at("b").attaches = false;
  const session_grant g = b.open();
  b.step(b.attach_of(g, 2));
  EXPECT_EQ(b.heard_by<control::attach_source>("a").size(), 1u);
  EXPECT_TRUE(b.all<answer_done>().empty());
  const control::source_attached from_a{incarnation_id(11), g.source, incarnation_id(7001), true,
                                        ""};
  b.say("a", from_a);  // said twice: counts once
  EXPECT_TRUE(b.all<answer_done>().empty());
  b.say("b",
        control::source_attached{incarnation_id(12), g.source, incarnation_id(7001), true, ""});
  ASSERT_EQ(b.all<answer_done>().size(), 1u);
  EXPECT_TRUE(b.all<answer_done>()[0].result.has_value());
  EXPECT_TRUE(b.view().sessions.at(0).attached);
}

TEST(coordinator_sessions, a_worker_lost_meanwhile_does_not_block_an_attach) {
  bench b;
  b.serve();
  b.processes.at("b").attaches = false;
  const session_grant g = b.open();
  b.step(b.attach_of(g, 2));
  b.lose_link("b");
  ASSERT_EQ(b.all<answer_done>().size(), 1u);
  EXPECT_TRUE(b.all<answer_done>()[0].result.has_value());
}

TEST(coordinator_sessions, a_lost_worker_blocks_an_attach_while_sources_are_shown_it) {
  bench b;
  b.serve();
  b.processes.at("b").attaches = false;
  const session_grant g = b.open();
  b.step(b.attach_of(g, 2));
  b.disk_answers = false;
  b.lose_link("b");
  EXPECT_TRUE(b.all<answer_done>().empty());
  b.disk_answers = true;
  b.acknowledge();
  EXPECT_FALSE(b.is_live(1));
  ASSERT_EQ(b.all<answer_done>().size(), 1u);
  EXPECT_TRUE(b.all<answer_done>()[0].result.has_value());
}

TEST(coordinator_sessions, an_attach_that_a_worker_never_answers_ends_in_time_and_is_withdrawn) {
  bench b;
  b.options.lease = 10 * k_second;
  b.serve();
  b.processes.at("b").attaches = false;
  const session_grant g = b.open();
  b.step(b.attach_of(g, 2));
  b.wait(2200 * k_millisecond);
  ASSERT_EQ(b.all<answer_done>().size(), 1u);
  EXPECT_EQ(b.all<answer_done>()[0].result.error().text,
            "worker 1 did not attach the source within 2000 ms");
  EXPECT_EQ(b.heard_by<control::detach_source>("a").size(), 1u);
  EXPECT_GT(b.heard_by<control::attach_source>("b").size(), 2u) << "asked again meanwhile";
}

TEST(coordinator_sessions, a_refused_attach_names_the_worker_and_is_withdrawn_everywhere) {
  bench b;
  b.serve();
  b.processes.at("b").attaches = false;
  const session_grant g = b.open();
  b.step(b.attach_of(g, 2));
  b.say("b", control::source_attached{incarnation_id(12), g.source, incarnation_id(7001), false,
                                      "no memory at 0x1234"});
  ASSERT_EQ(b.all<answer_done>().size(), 1u);
  EXPECT_EQ(b.all<answer_done>()[0].result.error().text, "worker 1 cannot attach the source");
  EXPECT_EQ(b.heard_by<control::detach_source>("a").size(), 1u);
}

TEST(coordinator_sessions, an_attach_that_lands_after_its_session_ended_is_undone) {
  bench b;
  b.serve();
  b.processes.at("b").attaches = false;
  const session_grant g = b.open();
  b.step(b.attach_of(g, 2));
  b.step(close_session{3, g.session, incarnation_id(7001)});
  b.forget();
  b.say("b",
        control::source_attached{incarnation_id(12), g.source, incarnation_id(7001), true, ""});
  ASSERT_EQ(b.heard_by<control::detach_source>("b").size(), 1u);
  EXPECT_EQ(b.heard_by<control::detach_source>("b")[0].incarnation, incarnation_id(7001));
}

TEST(coordinator_sessions, a_shape_beyond_the_grant_is_refused_by_field) {
  bench b;
  b.serve();
  session_request r;
  r.tokens_max = 8;
  const session_grant g = b.open(1, r);
  b.step(b.attach_of(g, 2));
  EXPECT_EQ(b.all<answer_done>().back().result.error().text, "rows_max is 16; at most 8");
  auto e = b.attach_of(g, 3);
  e.shape.rows_max = 8;
  e.shape.return_rows_max = 17;
  b.step(e);
  EXPECT_EQ(b.all<answer_done>().back().result.error().text, "return_rows_max is 17; at most 16");
  EXPECT_TRUE(b.heard_by<control::attach_source>("a").empty());
}

TEST(coordinator_sessions, a_returning_worker_gets_every_source_before_it_is_unmasked) {
  bench b;
  b.serve();
  const session_grant g = b.open();
  b.step(b.attach_of(g, 2));
  b.step(renew_session{g.session, incarnation_id(7001)});
  b.lose_link("b");
  b.add("b", 22).attaches = false;
  b.connect("b");
  ASSERT_EQ(b.heard_by<control::attach_source>("b").size(), 1u);
  EXPECT_FALSE(b.is_live(1));
  b.say("b",
        control::source_attached{incarnation_id(22), g.source, incarnation_id(7001), true, ""});
  EXPECT_TRUE(b.is_live(1));
}

TEST(coordinator_sessions, a_returning_worker_that_refused_a_source_is_asked_again) {
  bench b;
  b.options.lease = 10 * k_second;
  b.serve();
  const session_grant g = b.open();
  b.step(b.attach_of(g, 2));
  b.lose_link("b");
  b.add("b", 22).attaches = false;
  b.connect("b");
  const control::source_attached refusal{incarnation_id(22), g.source, incarnation_id(7001), false,
                                         "no memory"};
  b.say("b", refusal);
  EXPECT_FALSE(b.is_live(1));
  b.processes.at("b").attaches = true;
  b.wait(b.options.heartbeat_timeout + 200 * k_millisecond);
  EXPECT_TRUE(b.is_live(1));
  EXPECT_TRUE(b.all<session_ended>().empty());
}

TEST(coordinator_sessions, nobody_routes_to_a_worker_that_has_not_got_its_source) {
  bench b;
  b.options.lease = 10 * k_second;
  b.serve();
  const session_grant g = b.open();
  b.step(b.attach_of(g, 2));
  const session_grant other = b.open(3);  // without a source
  b.lose_link("b");
  b.add("b", 22).attaches = false;
  b.connect("b");
  b.wait(b.options.attach_limit - 100 * k_millisecond);
  EXPECT_FALSE(b.is_live(1));
  b.wait(200 * k_millisecond);
  EXPECT_TRUE(b.is_live(1));
  ASSERT_EQ(b.all<session_ended>().size(), 1u);
  EXPECT_EQ(b.all<session_ended>()[0].session, g.session);
  EXPECT_EQ(b.all<session_ended>()[0].why.text, "worker 1 cannot attach the source");
  EXPECT_EQ(b.view().sessions.size(), 1u);
}

// --- leases ---

TEST(coordinator_sessions, a_lease_lapses_unless_renewed_and_its_source_is_detached) {
  bench b;
  b.serve();
  const session_grant kept = b.open(1);
  const session_grant left = b.open(2);
  b.step(b.attach_of(left, 3));
  for (int i = 0; i < 6; ++i) {
    b.wait(200 * k_millisecond);
    b.step(renew_session{kept.session, incarnation_id(7001)});
  }
  ASSERT_EQ(b.all<session_ended>().size(), 1u);
  EXPECT_EQ(b.all<session_ended>()[0].session, left.session);
  EXPECT_EQ(b.all<session_ended>()[0].why.text, "the lease of session 2 has lapsed");
  EXPECT_EQ(b.heard_by<control::detach_source>("a").at(0).source, left.source);
  EXPECT_EQ(b.view().sessions.size(), 1u);
}

TEST(coordinator_sessions, closing_twice_says_that_it_is_not_known) {
  bench b;
  b.serve();
  const session_grant g = b.open();
  b.step(close_session{2, g.session, incarnation_id(7001)});
  EXPECT_TRUE(b.all<answer_done>().back().result.has_value());
  EXPECT_EQ(b.all<session_ended>().back().why.text, "session 1 is closed");
  b.step(close_session{3, g.session, incarnation_id(7001)});
  EXPECT_EQ(b.all<answer_done>().back().result.error().text, "session 1 is not known");
}

TEST(coordinator_sessions, another_process_can_neither_close_nor_resume_a_session) {
  bench b;
  b.serve();
  const session_grant g = b.open();
  b.step(close_session{2, g.session, incarnation_id(1)});
  EXPECT_EQ(b.all<answer_done>().back().result.error().text, "session 1 is not known");
  b.step(resume_session{3, g.session, incarnation_id(1)});
  EXPECT_EQ(text_of(b), "session 1 is not known");
}

TEST(coordinator_sessions, a_renewal_of_a_session_that_is_gone_tells_its_client) {
  bench b;
  b.serve();
  b.step(renew_session{session_id(44), incarnation_id(1)});
  EXPECT_EQ(b.all<session_ended>().at(0).why.text, "session 44 is not known");
}

// --- restart ---

TEST(coordinator_sessions, a_restart_learns_attached_sessions_from_the_workers) {
  bench b;
  b.serve();
  const session_grant g = b.open();
  b.step(b.attach_of(g, 2));
  b.forget();
  b.now += 5 * k_second;
  b.restart();
  b.step(resume_session{3, g.session, incarnation_id(7001)});
  EXPECT_TRUE(b.all<answer_session>().empty()) << "nobody can know it yet";
  b.connect("a");
  b.connect("b");
  ASSERT_EQ(b.all<answer_session>().size(), 1u);
  ASSERT_TRUE(b.all<answer_session>()[0].grant.has_value());
  EXPECT_EQ(b.all<answer_session>()[0].grant->source, g.source);
  EXPECT_NE(b.all<answer_session>()[0].grant->snapshot, nullptr);
  EXPECT_EQ(b.view().sessions.at(0).lease_left, k_second);
  EXPECT_NE(b.open(4).source, g.source);
}

TEST(coordinator_sessions, a_session_that_resumes_after_a_restart_is_granted_what_it_had) {
  bench b;
  b.options.model.shared = {.intermediate_size = 8, .count = 1};
  b.options.hold_shared_experts = true;
  b.serve();
  session_request wish;
  wish.tokens_max = 100;
  wish.micro_batches = 3;
  wish.top_k = 1;
  wish.shared_experts = true;
  const session_grant first = b.open(1, wish);
  b.step(b.attach_of(first, 2));  // exchanges of 16 rows, records of one routed and one shared
  ASSERT_TRUE(b.all<answer_done>().back().result.has_value());
  b.restart();
  b.connect("a");
  b.connect("b");
  b.step(resume_session{3, first.session, incarnation_id(7001)});
  const session_grant again = b.all<answer_session>().back().grant.value();
  EXPECT_EQ(again.tokens_max, 100u);
  EXPECT_EQ(again.micro_batches, 3u);
  EXPECT_EQ(again.top_k, 1u);
  // Its source may still have a record for the shared expert.
  b.step(b.attach_of(first, 4));
  EXPECT_TRUE(b.all<answer_done>().back().result.has_value());
}

TEST(coordinator_sessions, a_worker_that_lacks_a_session_of_another_is_given_it_after_a_restart) {
  bench b;
  b.serve();
  const session_grant g = b.open();
  b.step(b.attach_of(g, 2));
  b.processes.at("b").hello.sources.clear();
  b.processes.at("b").attaches = false;
  b.forget();
  b.restart();
  b.connect("b");
  b.connect("a");
  ASSERT_EQ(b.heard_by<control::attach_source>("b").size(), 1u);
  EXPECT_TRUE(b.all<publish_snapshot>().empty()) << "routed to without a source";
  b.say("b",
        control::source_attached{incarnation_id(12), g.source, incarnation_id(7001), true, ""});
  EXPECT_EQ(b.all<publish_snapshot>().size(), 1u);
}

// The first coordinator died after it had told b, and not a, that the session ends.
TEST(coordinator_sessions, a_session_that_was_ended_at_some_workers_ends_after_a_restart) {
  bench b;
  b.serve();
  const session_grant g = b.open();
  b.step(b.attach_of(g, 2));
  b.processes.at("b").hello.sources.clear();
  b.processes.at("b").attaches = false;
  b.forget();
  b.restart();
  b.connect("a");
  b.connect("b");
  ASSERT_EQ(b.heard_by<control::attach_source>("b").size(), 1u);
  b.say("b", control::source_attached{incarnation_id(12), g.source, incarnation_id(7001), false,
                                      "this session was detached here", true});
  ASSERT_EQ(b.all<session_ended>().size(), 1u);
  EXPECT_EQ(b.all<session_ended>()[0].session, g.session);
  EXPECT_EQ(b.all<session_ended>()[0].why.why, reason::attach_refused);
  EXPECT_EQ(b.heard_by<control::detach_source>("a").size(), 1u);
  EXPECT_EQ(b.all<publish_snapshot>().size(), 1u) << "the others need not wait";
}

TEST(coordinator_sessions, a_source_that_no_session_owns_is_detached_when_its_worker_returns) {
  bench b;
  b.serve();
  const session_grant g = b.open();
  b.step(b.attach_of(g, 2));
  b.lose_link("b");
  b.step(close_session{3, g.session, incarnation_id(7001)});
  b.forget();
  b.connect("b");  // still has it
  ASSERT_EQ(b.heard_by<control::detach_source>("b").size(), 1u);
  EXPECT_EQ(b.heard_by<control::detach_source>("b")[0].source, g.source);
}

TEST(coordinator_sessions, a_resume_that_nobody_vouches_for_is_answered_too) {
  bench b;
  b.serve();
  b.restart();
  b.step(resume_session{3, session_id(9), incarnation_id(1)});
  b.wait(2200 * k_millisecond);  // no worker comes
  ASSERT_EQ(b.all<answer_session>().size(), 1u);
  EXPECT_EQ(b.all<answer_session>()[0].grant.error().code, status::unavailable);
}

// --- the end ---

TEST(coordinator_sessions, shutting_down_answers_every_open_token_once_and_all_later_ones) {
  bench b;
  b.options.sessions_max = 200;
  b.options.sources_max = 200;
  b.serve();
  b.processes.at("b").attaches = false;
  b.disk_answers = false;
  for (request_token t = 1; t <= 70; ++t) {
    session_request r;
    r.incarnation = incarnation_id(7000 + t);
    b.step(open_session{t, r});
  }
  const session_grant g = *b.all<answer_session>().at(0).grant;
  b.step(b.attach_of(g, 100));
  b.step(shut_down{});
  EXPECT_EQ(b.all<answer_session>().size(), 70u);
  ASSERT_EQ(b.all<answer_done>().size(), 1u);
  EXPECT_EQ(b.all<answer_done>()[0].result.error().text, "the coordinator is shutting down");
  EXPECT_EQ(b.all<stopped>().size(), 1u);
  b.step(open_session{101, {}});
  b.step(close_session{102, g.session, incarnation_id(7001)});
  b.step(shut_down{});
  EXPECT_EQ(b.all<answer_session>().size(), 71u);
  EXPECT_EQ(b.all<answer_done>().size(), 2u);
  EXPECT_EQ(b.all<stopped>().size(), 1u);
}

}  // namespace
}  // namespace moetier::coordinator
