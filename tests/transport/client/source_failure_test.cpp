#include "tests/transport/client/session_rig.hpp"
#include "transport/time_needed.hpp"

// What a call becomes when workers are lost, late, stale, refuse or damage rows.
namespace moetier::client::toy {
namespace {

tier_shape two_replicas() { return {.workers = 3, .slots_per_worker = 8}; }

TEST(source_failure, replays_a_lost_workers_call_on_a_replica_with_the_same_bits) {
  session_rig rig(two_replicas(), {.mode = kernels::return_mode::exact});
  ASSERT_TRUE(rig.session->step_begin(false));
  rig.carrier.workers[2].acts = behaviour::lost;
  const inputs in(rig.shape, 16, 1);
  const auto out = rig.forward(in);
  ASSERT_TRUE(out) << out.error().text;
  expect_bits(*out, in.exact(rig.shape));
  EXPECT_EQ(rig.waited, 0) << "no snapshot tells of a connection that breaks between two that live";
  EXPECT_EQ(rig.session->last_times().replays, 1u);
  EXPECT_EQ(rig.carrier.keys.front().attempt, 0);
  EXPECT_EQ(rig.carrier.keys.back().attempt, 1);

  // The step goes on, and so does the next one.
  layer_call call = rig.call_of(in);
  call.layer = layer_id(3);
  ASSERT_TRUE(rig.forward(call));
  EXPECT_EQ(rig.carrier.keys.back().attempt, 1);
  ASSERT_TRUE(rig.session->step_end());
}

TEST(source_failure, a_call_without_another_replica_waits_until_there_is_one) {
  session_rig rig(two_replicas(), {.mode = kernels::return_mode::exact},
                  [](transport::routing_snapshot& first) {
                    first = make_snapshot(two_replicas(), 1, 1, {false, true, false});
                  });
  ASSERT_TRUE(rig.session->step_begin(false));
  rig.carrier.workers[2].acts = behaviour::lost;
  std::uint32_t revision = 1;
  rig.on_wait_newer = [&] {
    ++revision;
    rig.publish(make_snapshot(rig.shape, 1, revision, {revision >= 4, true, false}));
  };
  const inputs in(rig.shape, 16, 1);
  const auto out = rig.forward(in);
  ASSERT_TRUE(out) << out.error().text;
  expect_bits(*out, in.exact(rig.shape));
  EXPECT_EQ(rig.waited, 3);
  EXPECT_EQ(rig.session->last_times().replays, 1u);
}

TEST(source_failure, the_next_step_attaches_a_lost_worker_anew_and_spares_it_for_a_while) {
  session_rig rig(two_replicas(), {.mode = kernels::return_mode::exact});
  ASSERT_TRUE(rig.session->step_begin(false));
  rig.carrier.workers[2].acts = behaviour::lost;
  const inputs in(rig.shape, 16, 1);
  ASSERT_TRUE(rig.forward(in));
  const std::uint32_t before = rig.carrier.workers[2].exchanges;
  layer_call call = rig.call_of(in);
  call.layer = layer_id(3);
  ASSERT_TRUE(rig.forward(call));
  EXPECT_EQ(rig.session->last_times().replays, 0u) << "it is known by now";
  ASSERT_TRUE(rig.session->step_begin(false));
  EXPECT_EQ(rig.carrier.workers[2].attached, 2u);
  ASSERT_TRUE(rig.forward(in));
  EXPECT_EQ(rig.session->last_times().replays, 0u);
  EXPECT_EQ(rig.carrier.workers[2].exchanges, before);
}

TEST(source_failure, a_call_that_only_the_lost_worker_could_serve_succeeds_in_the_next_step) {
  const tier_shape shape{.workers = 2, .slots_per_worker = 4};  // every expert once
  session_rig rig(shape, {.mode = kernels::return_mode::exact});
  rig.carrier.workers[2].acts = behaviour::lost;
  ASSERT_TRUE(rig.session->step_begin(false));
  const inputs in(shape, 16, 1);
  const auto lost = rig.forward(in);
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().why, reason::worker_lost);
  EXPECT_EQ(rig.waited, 1);
  rig.carrier.workers[2].acts = behaviour::answer;
  ASSERT_TRUE(rig.session->step_begin(true));
  EXPECT_EQ(rig.waited, 1) << "the connection may be whole again: nothing is waited for";
  const auto out = rig.forward(in);
  ASSERT_TRUE(out) << out.error().text;
  expect_bits(*out, in.exact(shape));
}

TEST(source_failure, who_is_suspect_is_better_than_who_is_lost) {
  transport::suspicion_ptr told;
  session_rig rig({.workers = 2, .slots_per_worker = 8},
                  {.mode = kernels::return_mode::exact, .suspicion = [&] { return told; }});
  ASSERT_TRUE(rig.session->step_begin(false));
  rig.carrier.workers[2].acts = behaviour::lost;
  const auto& first = rig.newest->workers[0];
  told = std::make_shared<const transport::suspicion>(
      transport::suspicion{1, {{first.worker, first.incarnation}}});
  const inputs in(rig.shape, 16, 1);
  const auto out = rig.forward(in);
  ASSERT_TRUE(out) << out.error().text;
  expect_bits(*out, in.exact(rig.shape));
  EXPECT_EQ(rig.session->last_times().replays, 1u);
}

TEST(source_failure, a_call_lost_with_a_worker_that_came_back_does_not_break_its_next_process) {
  session_rig rig(two_replicas(), {.micro_batches = 2, .mode = kernels::return_mode::exact});
  ASSERT_TRUE(rig.session->step_begin(false));
  rig.carrier.workers[2].acts = behaviour::silent;
  const inputs in(rig.shape, 16, 1);
  layer_call other = rig.call_of(in);
  other.micro_batch = 1;
  ASSERT_TRUE(rig.session->submit(rig.call_of(in)));
  ASSERT_TRUE(rig.session->submit(other));
  int turns = 0;
  rig.carrier.on_wait = [&] {
    if (rig.carrier.workers[2].attached == 2) rig.carrier.workers[2].acts = behaviour::answer;
    if (++turns != 3) return;
    auto next = make_snapshot(rig.shape, 1, 2);
    next.workers[1].incarnation = incarnation_id(999);
    rig.publish(std::move(next));
  };
  for (const std::uint16_t u : std::initializer_list<std::uint16_t>{0, 1}) {
    std::vector<float> out;
    const auto ok = rig.session->collect(u, rig.result_to(out, 16));
    ASSERT_TRUE(ok) << ok.error().text;
    expect_bits(out, in.exact(rig.shape));
  }
  EXPECT_EQ(rig.carrier.workers[2].attached, 2u);
  ASSERT_TRUE(rig.session->step_begin(false));
  EXPECT_EQ(rig.carrier.workers[2].attached, 2u) << "the next process was never lost";
}

TEST(source_failure, a_steps_replay_waits_for_a_snapshot_no_longer_than_the_step_may) {
  session_rig rig(two_replicas(), {.call_deadline = 7200 * k_second});
  for (const duration_ns limit : {duration_ns{0}, 20 * k_millisecond}) {
    const tier_shape shape = rig.shape;
    ASSERT_TRUE(rig.session->step_begin(false));
    rig.carrier.workers[1].acts = behaviour::stale;
    ASSERT_FALSE(rig.forward(inputs(shape, 16, 1)));
    ASSERT_TRUE(rig.session->step_begin(true, limit));
    EXPECT_EQ(rig.waited_limit, limit == 0 ? 3600 * k_second : limit);
  }
}

TEST(source_failure, replays_a_frozen_workers_call_when_the_snapshot_masks_it) {
  session_rig rig(two_replicas(), {.mode = kernels::return_mode::exact});
  ASSERT_TRUE(rig.session->step_begin(false));
  rig.carrier.workers[1].acts = behaviour::silent;
  int turns = 0;
  rig.carrier.on_wait = [&] {
    if (++turns == 5) rig.publish(make_snapshot(rig.shape, 1, 2, {false, true, true}));
  };
  const inputs in(rig.shape, 16, 4);
  const auto out = rig.forward(in);
  ASSERT_TRUE(out) << out.error().text;
  expect_bits(*out, in.exact(rig.shape));
  EXPECT_EQ(rig.session->last_times().replays, 1u);
}

TEST(source_failure, names_the_late_worker_with_bytes_and_age) {
  session_rig rig(two_replicas(), {.call_deadline = 3 * k_millisecond});
  ASSERT_TRUE(rig.session->step_begin(false));
  rig.carrier.workers[3].acts = behaviour::silent;
  inputs in(rig.shape, 16, 4);
  const time_ns start = monotonic_now();
  const auto out = rig.forward(in);
  EXPECT_GE(monotonic_now() - start, 3 * k_millisecond);
  ASSERT_FALSE(out);
  EXPECT_EQ(out.error().code, status::timeout);
  EXPECT_EQ(out.error().why, reason::worker_late);
  EXPECT_EQ(out.error().text.find("worker 3 is late in layer 2: "), 0u) << out.error().text;
  EXPECT_NE(out.error().text.find(" bytes due, 0 seen, "), std::string::npos) << out.error().text;
}

TEST(source_failure, says_with_numbers_that_a_worker_had_no_time_and_stays_away_for_a_moment) {
  session_rig rig(two_replicas());
  ASSERT_TRUE(rig.session->step_begin(false));
  rig.carrier.workers[2].acts = behaviour::refuse;
  rig.carrier.workers[2].refusal = status::overloaded;
  rig.carrier.workers[2].refusal_detail =
      transport::detail_of({.ahead = 400 * k_millisecond, .call = 7 * k_millisecond});
  const auto out = rig.forward(inputs(rig.shape, 16, 1));
  ASSERT_FALSE(out);
  EXPECT_EQ(out.error().code, status::overloaded);
  EXPECT_EQ(
      out.error().text.find("no credit: worker 2 has 400000 us of calls before one of layer 2 "
                            "that takes 7000 us; "),
      0u)
      << out.error().text;
  EXPECT_GE(out.error().retry_after_ns, 50 * k_millisecond);
  EXPECT_FALSE(rig.session->step_end());

  rig.carrier.workers[2].acts = behaviour::answer;
  const auto early = rig.session->step_begin(false);
  ASSERT_FALSE(early);
  EXPECT_EQ(early.error().code, status::overloaded);
  EXPECT_GT(early.error().retry_after_ns, 0u);
  EXPECT_LE(early.error().retry_after_ns, out.error().retry_after_ns);
  ASSERT_TRUE(rig.session->step_begin(true)) << "a step that began goes on";
  EXPECT_TRUE(rig.forward(inputs(rig.shape, 16, 1)));
}

TEST(source_failure, lets_the_worker_that_was_slowest_of_late_decide_whether_there_is_time) {
  session_rig rig({.workers = 2, .slots_per_worker = 4});
  const auto deciders = [&] {
    std::vector<std::uint16_t> who;
    for (std::size_t i = 0; i < rig.carrier.keys.size(); ++i) {
      const bool decides = (rig.carrier.keys[i].flags & transport::k_flag_decided) == 0;
      if (decides) who.push_back(rig.carrier.key_workers[i]);
    }
    EXPECT_EQ(rig.carrier.keys.size(), 2u);
    rig.carrier.keys.clear();
    rig.carrier.key_workers.clear();
    return who;
  };
  const inputs in(rig.shape, 16, 1);
  ASSERT_TRUE(rig.session->step_begin(false));
  ASSERT_TRUE(rig.forward(in));
  const auto first = deciders();
  ASSERT_EQ(first.size(), 1u);
  const std::uint16_t other = first.front() == 1 ? 2 : 1;
  auto& slow = rig.carrier.workers[other];
  slow.acts = behaviour::refuse;
  slow.refusal = status::overloaded;
  slow.refusal_detail = transport::detail_of({.ahead = k_millisecond, .call = k_microsecond});
  ASSERT_TRUE(rig.session->step_end());
  ASSERT_TRUE(rig.session->step_begin(false));
  ASSERT_FALSE(rig.forward(in));
  EXPECT_EQ(deciders(), first);
  slow.acts = behaviour::answer;
  ASSERT_TRUE(rig.session->step_begin(true));
  ASSERT_TRUE(rig.forward(in));
  EXPECT_EQ(deciders(), std::vector{other});
  ASSERT_TRUE(rig.session->step_begin(true));
  ASSERT_TRUE(rig.forward(in)) << "both answered at once by then";
  EXPECT_EQ(deciders(), first);
}

TEST(source_failure, calls_a_deadline_that_no_worker_can_keep_a_timeout) {
  session_rig rig(two_replicas());
  ASSERT_TRUE(rig.session->step_begin(false));
  rig.carrier.workers[2].acts = behaviour::refuse;
  rig.carrier.workers[2].refusal = status::timeout;
  rig.carrier.workers[2].refusal_detail = transport::detail_of({.call = 7 * k_millisecond});
  const auto out = rig.forward(inputs(rig.shape, 16, 1));
  ASSERT_FALSE(out);
  EXPECT_EQ(out.error().code, status::timeout);
  EXPECT_EQ(
      out.error().text.find("a call of layer 2 that takes worker 2 7000 us did not end within "),
      0u)
      << out.error().text;
}

TEST(source_failure, begins_no_step_beyond_its_tokens_and_never_holds_up_one_that_began) {
  session_rig rig(two_replicas(), {.tokens_per_second = [] { return std::uint64_t{100}; }});
  ASSERT_TRUE(rig.session->step_begin(false));
  for (std::uint16_t layer = 2; layer <= 3; ++layer) {  // 16 tokens of a step, whatever its layers
    const inputs in(rig.shape, 16, 1);
    layer_call call = rig.call_of(in);
    call.layer = layer_id(layer);
    ASSERT_TRUE(rig.forward(call));
  }
  ASSERT_TRUE(rig.session->step_end());
  const auto held = rig.session->step_begin(false);  // 10 were saved up: 6 are owed
  ASSERT_FALSE(held);
  EXPECT_EQ(held.error().code, status::overloaded);
  EXPECT_EQ(held.error().text.find("no credit: at 100 tokens a second the next step may begin in "),
            0u)
      << held.error().text;
  EXPECT_GT(held.error().retry_after_ns, 0u);
  EXPECT_LT(held.error().retry_after_ns, 61 * k_millisecond);
}

TEST(source_failure, ends_at_the_deadline_when_no_snapshot_takes_the_lost_worker_away) {
  session_rig rig({.workers = 2, .slots_per_worker = 4});
  ASSERT_TRUE(rig.session->step_begin(false));
  rig.carrier.workers[2].acts = behaviour::lost;
  const auto out = rig.forward(inputs(rig.shape, 16, 1));
  ASSERT_FALSE(out);
  EXPECT_EQ(out.error().text, "worker 2 was lost in layer 2");
  EXPECT_EQ(out.error().code, status::timeout);
  EXPECT_EQ(rig.waited, 1);
  EXPECT_GT(rig.waited_limit, 0u);
  EXPECT_LE(rig.waited_limit, k_ample);
}

TEST(source_failure, does_not_replay_into_another_generation) {
  session_rig rig({.workers = 2, .slots_per_worker = 4});
  ASSERT_TRUE(rig.session->step_begin(false));
  rig.carrier.workers[2].acts = behaviour::lost;
  rig.on_wait_newer = [&] {
    rig.publish(make_snapshot(rig.shape, 2, 1));
    rig.carrier.workers[2].acts = behaviour::answer;
  };
  const auto out = rig.forward(inputs(rig.shape, 16, 1));
  ASSERT_FALSE(out);
  EXPECT_EQ(out.error().why, reason::worker_lost);
  // The step's replay adopts it.
  ASSERT_TRUE(rig.session->step_begin(true));
  EXPECT_EQ(rig.session->snapshot().generation, generation_number(2));
  ASSERT_TRUE(rig.forward(inputs(rig.shape, 16, 1)));
}

TEST(source_failure, replays_a_call_at_most_so_often) {
  session_rig rig(two_replicas(), {.replays_max = 2});
  ASSERT_TRUE(rig.session->step_begin(false));
  for (const std::uint16_t w : std::initializer_list<std::uint16_t>{1, 2, 3})
    rig.carrier.workers[w].acts = behaviour::lost;
  std::uint32_t revision = 1;
  rig.on_wait_newer = [&] {
    ++revision;
    auto next = make_snapshot(rig.shape, 1, revision);
    for (auto& worker : next.workers) worker.incarnation.value += 1000 * revision;
    rig.publish(std::move(next));
  };
  const auto out = rig.forward(inputs(rig.shape, 16, 1));
  ASSERT_FALSE(out);
  EXPECT_EQ(out.error().why, reason::worker_lost);
  EXPECT_EQ(rig.waited, 2);
}

TEST(source_failure, attaches_a_workers_new_incarnation) {
  const tier_shape shape{.workers = 1, .slots_per_worker = 8};
  session_rig rig(shape, {.mode = kernels::return_mode::exact});
  ASSERT_TRUE(rig.session->step_begin(false));
  rig.carrier.workers[1].acts = behaviour::lost;
  rig.on_wait_newer = [&] {
    auto next = make_snapshot(shape, 1, 2);
    next.workers[0].incarnation = incarnation_id(999);
    rig.publish(std::move(next));
    rig.carrier.workers[1].acts = behaviour::answer;
  };
  const inputs in(shape, 8, 5);
  const auto out = rig.forward(in);
  ASSERT_TRUE(out) << out.error().text;
  expect_bits(*out, in.exact(shape));
  EXPECT_EQ(rig.carrier.workers[1].attached, 2u);
}

TEST(source_failure, answers_unavailable_at_once_when_an_expert_has_no_live_replica) {
  session_rig rig;  // 8 experts in 9 slots: expert 0 has two
  ASSERT_TRUE(rig.session->step_begin(false));
  rig.publish(make_snapshot(rig.shape, 1, 2, {true, false, true}));
  inputs in(rig.shape, 1, 1);
  in.ids = {0, 4, 7};
  const auto out = rig.forward(in);
  ASSERT_FALSE(out);
  EXPECT_EQ(out.error().text, "layer 2 expert 4 has no live replica");
  EXPECT_EQ(out.error().code, status::unavailable);
  EXPECT_TRUE(rig.carrier.keys.empty());
  EXPECT_EQ(rig.waited, 0);

  // Calls that do not need it are served.
  ASSERT_TRUE(rig.session->step_begin(false));
  in.ids = {0, 6, 7};
  ASSERT_TRUE(rig.forward(in));
}

TEST(source_failure, ends_a_replay_without_replica_as_unavailable) {
  session_rig rig;
  ASSERT_TRUE(rig.session->step_begin(false));
  rig.carrier.workers[2].acts = behaviour::lost;
  rig.on_wait_newer = [&] { rig.publish(make_snapshot(rig.shape, 1, 2, {true, false, true})); };
  const auto out = rig.forward(inputs(rig.shape, 16, 1));
  ASSERT_FALSE(out);
  EXPECT_EQ(out.error().why, reason::no_replica);
}

struct answer_case {
  behaviour acts;
  status refusal;
  const char* text;
  status code;
};

TEST(source_failure, turns_every_answer_into_its_sentence) {
  for (const answer_case& c : {
           answer_case{behaviour::stale, status::ok,
                       "worker 1 does not hold generation 1; it holds 9", status::stale_generation},
           answer_case{behaviour::refuse, status::bad_state,
                       "worker 1 refused rows of layer 2: BAD_STATE", status::timeout},
           answer_case{behaviour::refuse, status::stale_generation,
                       "worker 1 does not hold generation 1; it holds 0", status::stale_generation},
           answer_case{behaviour::damaged, status::ok,
                       "rows from worker 1 in layer 2 failed their check", status::corrupt},
           answer_case{behaviour::short_rows, status::ok,
                       "rows from worker 1 in layer 2 failed their check", status::corrupt},
       }) {
    const tier_shape shape{.workers = 1, .slots_per_worker = 8};
    session_rig rig(shape);
    ASSERT_TRUE(rig.session->step_begin(false));
    rig.carrier.workers[1].acts = c.acts;
    rig.carrier.workers[1].refusal = c.refusal;
    const auto out = rig.forward(inputs(shape, 4, 1));
    ASSERT_FALSE(out);
    EXPECT_EQ(out.error().text, c.text);
    EXPECT_EQ(out.error().code, c.code);
    EXPECT_EQ(rig.waited, 0);
  }
}

TEST(source_failure, replays_when_a_draining_worker_refuses) {
  session_rig rig(two_replicas(), {.mode = kernels::return_mode::exact});
  ASSERT_TRUE(rig.session->step_begin(false));
  rig.carrier.workers[2].acts = behaviour::refuse;
  rig.carrier.workers[2].refusal = status::unavailable;
  rig.on_wait_newer = [&] { rig.publish(make_snapshot(rig.shape, 1, 2, {true, false, true})); };
  const inputs in(rig.shape, 16, 1);
  const auto out = rig.forward(in);
  ASSERT_TRUE(out) << out.error().text;
  expect_bits(*out, in.exact(rig.shape));
}

TEST(source_failure, poisons_the_step_until_it_is_begun_anew) {
  const tier_shape shape{.workers = 1, .slots_per_worker = 8};
  session_rig rig(shape);
  ASSERT_TRUE(rig.session->step_begin(false));
  rig.carrier.workers[1].acts = behaviour::damaged;
  const inputs in(shape, 4, 1);
  ASSERT_FALSE(rig.forward(in));
  rig.carrier.workers[1].acts = behaviour::answer;
  const auto skipped = rig.forward(in);
  ASSERT_FALSE(skipped);
  EXPECT_EQ(skipped.error().text, "an earlier call of step 1 failed; replay the step");
  EXPECT_EQ(skipped.error().code, status::skipped);
  const auto ended = rig.session->step_end();
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().why, reason::rows_corrupt);
  ASSERT_TRUE(rig.session->step_begin(true));
  EXPECT_EQ(rig.session->step(), 1u);
  ASSERT_TRUE(rig.forward(in));
  EXPECT_EQ(rig.carrier.keys.back().attempt, 1);
  ASSERT_TRUE(rig.session->step_end());
}

TEST(source_failure, other_micro_batches_end_right_when_one_fails) {
  session_rig rig(two_replicas(), {.micro_batches = 2, .mode = kernels::return_mode::exact});
  ASSERT_TRUE(rig.session->step_begin(false));
  const inputs a(rig.shape, 16, 1);
  const inputs b(rig.shape, 16, 2);
  layer_call call = rig.call_of(b);
  call.micro_batch = 1;
  rig.carrier.workers[2].acts = behaviour::silent;
  ASSERT_TRUE(rig.session->submit(rig.call_of(a)));
  ASSERT_TRUE(rig.session->submit(call));
  // Worker 2 is masked while both calls wait for it and others' rows are already in.
  int turns = 0;
  rig.carrier.on_wait = [&] {
    if (++turns == 3) rig.publish(make_snapshot(rig.shape, 1, 2, {true, false, true}));
  };
  std::vector<float> out;
  for (const std::uint16_t u : std::initializer_list<std::uint16_t>{0, 1}) {
    const auto ok = rig.session->collect(u, rig.result_to(out, 16));
    ASSERT_TRUE(ok) << ok.error().text;
    expect_bits(out, (u == 0 ? a : b).exact(rig.shape));
    EXPECT_EQ(rig.session->last_times().replays, 1u);
  }
}

TEST(source_failure, a_worker_that_a_restarted_coordinator_has_not_met_stays_attached) {
  session_rig rig(two_replicas(), {.mode = kernels::return_mode::exact});
  const inputs in(rig.shape, 16, 1);
  ASSERT_TRUE(rig.session->step_begin(false));
  ASSERT_TRUE(rig.forward(in));
  auto unmet = make_snapshot(rig.shape, 1, 2, {true, false, true});
  unmet.workers[1].incarnation = incarnation_id();
  rig.publish(std::move(unmet));
  ASSERT_TRUE(rig.session->step_begin(false));
  ASSERT_TRUE(rig.forward(in));
  rig.publish(make_snapshot(rig.shape, 1, 3));
  ASSERT_TRUE(rig.session->step_begin(false));
  const auto out = rig.forward(in);
  ASSERT_TRUE(out) << out.error().text;
  expect_bits(*out, in.exact(rig.shape));
  EXPECT_EQ(rig.carrier.workers[2].attached, 1u);
  EXPECT_EQ(rig.carrier.workers[2].exchanges, 2u);
}

TEST(source_failure, late_banks_stop_only_calls_that_need_the_worker) {
  const tier_shape shape{.workers = 2, .slots_per_worker = 4};
  session_rig rig(shape);
  rig.carrier.workers[1].acts = behaviour::silent;
  inputs in(shape, 1, 1);
  in.ids = {0, 1, 2};  // worker 1 alone
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(rig.session->step_begin(false));
    layer_call call = rig.call_of(in);
    call.deadline = 2 * k_millisecond;
    const auto out = rig.forward(call);
    ASSERT_FALSE(out);
    EXPECT_EQ(out.error().text.find("worker 1 is late in layer 2: "), 0u) << out.error().text;
  }
  EXPECT_EQ(rig.carrier.workers[1].exchanges, 2u);  // both banks are late
  ASSERT_TRUE(rig.session->step_begin(false));
  in.ids = {5, 6, 7};
  ASSERT_TRUE(rig.forward(in));
}

TEST(source_failure, a_cancelled_step_leaves_a_session_that_works) {
  session_rig rig(two_replicas(), {.mode = kernels::return_mode::exact});
  ASSERT_TRUE(rig.session->step_begin(false));
  const inputs in(rig.shape, 16, 1);
  ASSERT_TRUE(rig.session->submit(rig.call_of(in)));
  rig.session->cancel();
  std::vector<float> out;
  const auto ended = rig.session->collect(0, rig.result_to(out, 16));
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().code, status::bad_state);
  ASSERT_TRUE(rig.session->step_begin(false));
  const auto again = rig.forward(in);
  ASSERT_TRUE(again);
  expect_bits(*again, in.exact(rig.shape));
}

TEST(source_failure, random_deaths_and_returns_never_give_a_wrong_row) {
  std::minstd_rand random(11);
  std::uint32_t right = 0;
  for (int round = 0; round < 60; ++round) {
    session_rig rig(two_replicas(),
                    {.micro_batches = 2,
                     .mode = kernels::return_mode::exact,
                     .rows_per_chunk_max = 1 + static_cast<std::uint32_t>(random() % 16),
                     .call_deadline = k_ample});
    std::uint32_t revision = 1;
    std::vector<bool> live(3, true);
    const auto mask_dead = [&] {
      for (std::uint16_t w = 1; w <= 3; ++w) {
        auto& script = rig.carrier.workers[w];
        if (script.acts != behaviour::answer && script.answers_first == 0) live[w - 1u] = false;
      }
      rig.publish(make_snapshot(rig.shape, 1, ++revision, live));
    };
    rig.on_wait_newer = mask_dead;
    int turns = 0;
    rig.carrier.on_wait = [&] {
      if (++turns % 4 == 0) mask_dead();
    };
    for (int step = 0; step < 6; ++step) {
      ASSERT_TRUE(rig.session->step_begin(false));
      if (step == 2) {
        auto& victim = rig.carrier.workers[static_cast<std::uint16_t>(1 + random() % 3)];
        victim.acts = random() % 2 == 0 ? behaviour::lost : behaviour::silent;
        victim.answers_first = static_cast<std::uint32_t>(random() % 4);
      }
      std::vector<inputs> in;
      for (std::uint16_t u = 0; u < 2; ++u) {
        in.emplace_back(rig.shape, static_cast<std::uint32_t>(random() % 17),
                        static_cast<unsigned>(random()));
        layer_call call = rig.call_of(in[u]);
        call.micro_batch = u;
        const auto ok = rig.session->submit(call);
        ASSERT_TRUE(ok) << ok.error().text;
      }
      for (const std::uint16_t u : std::initializer_list<std::uint16_t>{1, 0}) {
        std::vector<float> out;
        const auto ok = rig.session->collect(u, rig.result_to(out, in[u].tokens));
        ASSERT_TRUE(ok) << ok.error().text << " in round " << round;
        expect_bits(out, in[u].exact(rig.shape));
        ++right;
      }
    }
  }
  EXPECT_EQ(right, 60u * 6 * 2);
}

}  // namespace
}  // namespace moetier::client::toy
