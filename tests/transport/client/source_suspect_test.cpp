#include "tests/transport/client/session_rig.hpp"

// Whom a source avoids: workers that the coordinator suspects and those that made a call late. It
// is a hint: membership is the snapshot's, and a call that needs a suspect waits for it.
namespace moetier::client::toy {
namespace {

tier_shape three_replicas() { return {.workers = 3, .slots_per_worker = 8}; }

// The coordinator's word, changed by the test.
struct word {
  transport::suspicion_ptr told;
  std::uint64_t number = 0;

  void suspect(const transport::routing_snapshot& s, std::vector<std::size_t> spans) {
    transport::suspicion next{++number, {}};
    for (const std::size_t i : spans) {
      next.workers.push_back({s.workers[i].worker, s.workers[i].incarnation});
    }
    told = std::make_shared<const transport::suspicion>(std::move(next));
  }
  source_session_options wish(source_session_options more = {}) {
    more.mode = kernels::return_mode::exact;
    more.suspicion = [this] { return told; };
    return more;
  }
};

TEST(source_suspect, a_call_that_waits_for_a_suspect_is_replayed_at_once_with_the_same_bits) {
  word coordinator;
  session_rig rig(three_replicas(), coordinator.wish());
  ASSERT_TRUE(rig.session->step_begin(false));
  rig.carrier.workers[2].acts = behaviour::silent;
  int turns = 0;
  rig.carrier.on_wait = [&] {
    if (++turns == 3) coordinator.suspect(*rig.newest, {1});
  };
  const inputs in(rig.shape, 16, 1);
  const auto out = rig.forward(in);
  ASSERT_TRUE(out) << out.error().text;
  expect_bits(*out, in.exact(rig.shape));
  EXPECT_EQ(rig.session->last_times().replays, 1u);
  EXPECT_EQ(rig.waited, 0);  // no newer snapshot was needed
  EXPECT_EQ(rig.carrier.keys.back().attempt, 1);
}

TEST(source_suspect, later_calls_spare_the_suspect_until_it_is_cleared) {
  word coordinator;
  session_rig rig(three_replicas(), coordinator.wish());
  coordinator.suspect(*rig.newest, {0, 1});
  ASSERT_TRUE(rig.session->step_begin(false));
  const inputs in(rig.shape, 16, 1);
  auto out = rig.forward(in);
  ASSERT_TRUE(out) << out.error().text;
  expect_bits(*out, in.exact(rig.shape));
  EXPECT_EQ(rig.carrier.workers[1].exchanges, 0u);
  EXPECT_EQ(rig.carrier.workers[2].exchanges, 0u);
  EXPECT_EQ(rig.carrier.workers[3].exchanges, 1u);

  coordinator.suspect(*rig.newest, {});
  ASSERT_TRUE(rig.session->step_begin(false));
  ASSERT_TRUE(rig.forward(in));
  EXPECT_EQ(rig.carrier.workers[1].exchanges, 1u);
  EXPECT_EQ(rig.carrier.workers[2].exchanges, 1u);
}

TEST(source_suspect, rows_of_the_suspect_are_spread_over_all_other_replicas) {
  word coordinator;
  session_rig rig(three_replicas(), coordinator.wish());
  coordinator.suspect(*rig.newest, {1});
  ASSERT_TRUE(rig.session->step_begin(false));
  for (unsigned seed = 1; seed < 9; ++seed) {
    ASSERT_TRUE(rig.forward(inputs(rig.shape, 1, seed)));
    ASSERT_TRUE(rig.session->step_begin(false));
  }
  EXPECT_EQ(rig.carrier.workers[2].exchanges, 0u);
  EXPECT_GE(rig.carrier.workers[1].exchanges, 3u);
  EXPECT_GE(rig.carrier.workers[3].exchanges, 3u);
}

TEST(source_suspect, a_call_that_only_the_suspect_can_serve_waits_for_it) {
  word coordinator;
  const tier_shape shape{.workers = 2, .slots_per_worker = 4};  // every expert once
  session_rig rig(shape, coordinator.wish());
  coordinator.suspect(*rig.newest, {0});
  rig.carrier.workers[1].acts = behaviour::silent;
  int turns = 0;
  rig.carrier.on_wait = [&] {
    if (++turns == 5) rig.carrier.workers[1].acts = behaviour::answer;
  };
  ASSERT_TRUE(rig.session->step_begin(false));
  const inputs in(shape, 16, 1);
  const auto out = rig.forward(in);
  ASSERT_TRUE(out) << out.error().text;
  expect_bits(*out, in.exact(shape));
  EXPECT_EQ(rig.session->last_times().replays, 0u);
}

TEST(source_suspect, a_chunk_whose_turn_comes_after_the_suspicion_does_not_wait_for_the_suspect) {
  word coordinator;
  session_rig rig(three_replicas(),
                  coordinator.wish({.rows_per_chunk_max = 4, .call_deadline = 3 * k_second}));
  ASSERT_TRUE(rig.session->step_begin(false));
  rig.carrier.workers[1].acts = behaviour::silent;
  rig.carrier.workers[2] = {.acts = behaviour::silent, .answers_first = 2};  // as many as banks
  const inputs in(rig.shape, 16, 1);
  std::size_t turns = 0;
  rig.carrier.on_wait = [&] {
    if (++turns == 3) coordinator.suspect(*rig.newest, {1});  // nothing waits for it yet
    if (turns == 6) rig.carrier.workers[1].acts = behaviour::answer;
  };
  const auto out = rig.forward(in);
  ASSERT_TRUE(out) << out.error().text;
  expect_bits(*out, in.exact(rig.shape));
}

TEST(source_suspect, a_replica_that_came_after_the_call_was_sent_serves_it) {
  word coordinator;
  session_rig rig(three_replicas(), coordinator.wish(), [](transport::routing_snapshot& first) {
    first = make_snapshot(three_replicas(), 1, 1, {true, false, false});
  });
  coordinator.suspect(*rig.newest, {0});
  ASSERT_TRUE(rig.session->step_begin(false));
  rig.carrier.workers[1].acts = behaviour::silent;
  int turns = 0;
  rig.carrier.on_wait = [&] {
    if (++turns == 3) rig.publish(make_snapshot(three_replicas(), 1, 2, {true, false, true}));
  };
  const inputs in(rig.shape, 16, 1);
  const auto out = rig.forward(in);
  ASSERT_TRUE(out) << out.error().text;
  expect_bits(*out, in.exact(rig.shape));
  EXPECT_EQ(rig.session->last_times().replays, 1u);
  EXPECT_GT(rig.carrier.workers[3].exchanges, 0u);
}

TEST(source_suspect, an_earlier_process_of_a_worker_says_nothing_about_this_one) {
  word coordinator;
  session_rig rig(three_replicas(), coordinator.wish());
  coordinator.told = std::make_shared<const transport::suspicion>(
      transport::suspicion{1, {{rig.newest->workers[1].worker, incarnation_id(0xdead)}}});
  ASSERT_TRUE(rig.session->step_begin(false));
  ASSERT_TRUE(rig.forward(inputs(rig.shape, 16, 1)));
  EXPECT_EQ(rig.carrier.workers[2].exchanges, 1u);
}

TEST(source_suspect, a_suspicion_that_is_taken_back_meanwhile_fails_no_call) {
  word coordinator;
  session_rig rig(three_replicas(), coordinator.wish({.micro_batches = 2}));
  ASSERT_TRUE(rig.session->step_begin(false));
  rig.carrier.workers[2].acts = behaviour::silent;
  const inputs in(rig.shape, 16, 1);
  layer_call other = rig.call_of(in);
  other.micro_batch = 1;
  ASSERT_TRUE(rig.session->submit(other));
  int turns = 0;
  rig.carrier.on_wait = [&] {
    if (++turns == 3) coordinator.suspect(*rig.newest, {1});
  };
  ASSERT_TRUE(rig.forward(in, 0));  // both were given up for the suspect's sake
  coordinator.suspect(*rig.newest, {});
  rig.carrier.workers[2].acts = behaviour::answer;
  std::vector<float> out;
  const auto ended = rig.session->collect(1, rig.result_to(out, 16));
  ASSERT_TRUE(ended) << ended.error().text;
  expect_bits(out, in.exact(rig.shape));
}

TEST(source_suspect, a_call_is_tried_again_while_its_caller_waits_for_another_one) {
  word coordinator;
  session_rig rig({.workers = 2, .slots_per_worker = 8},
                  coordinator.wish({.micro_batches = 2, .call_deadline = 200 * k_millisecond}));
  ASSERT_TRUE(rig.session->step_begin(false));
  rig.carrier.workers[1].acts = behaviour::silent;
  rig.carrier.workers[2].acts = behaviour::silent;
  const inputs in(rig.shape, 16, 1);
  ASSERT_TRUE(rig.session->submit(rig.call_of(inputs(rig.shape, 1, 2))));
  layer_call other = rig.call_of(in);
  other.micro_batch = 1;
  other.deadline = k_ample;
  ASSERT_TRUE(rig.session->submit(other));
  int turns = 0;
  rig.carrier.on_wait = [&] {
    if (++turns == 3) coordinator.suspect(*rig.newest, {1});
    const auto& keys = rig.carrier.keys;
    const bool sent = std::any_of(keys.begin(), keys.end(), [](const auto& key) {
      return key.micro_batch == 1 && key.attempt > 0;
    });
    if (sent) rig.carrier.workers[1].acts = behaviour::answer;
  };
  for (const std::uint16_t u : std::initializer_list<std::uint16_t>{0, 1}) {
    std::vector<float> out;
    const auto ended = rig.session->collect(u, rig.result_to(out, u == 0 ? 1 : 16));
    ASSERT_TRUE(ended) << ended.error().text;
    if (u == 1) expect_bits(out, in.exact(rig.shape));
  }
}

TEST(source_suspect, a_call_is_given_up_at_most_so_often_as_replays_are_allowed) {
  word coordinator;
  session_rig rig(three_replicas(),
                  coordinator.wish({.call_deadline = 200 * k_millisecond, .replays_max = 2}));
  for (std::uint16_t w = 1; w <= 3; ++w) rig.carrier.workers[w].acts = behaviour::silent;
  ASSERT_TRUE(rig.session->step_begin(false));
  std::size_t turns = 0;
  rig.carrier.on_wait = [&] { coordinator.suspect(*rig.newest, {turns++ % 3}); };
  const auto out = rig.forward(inputs(rig.shape, 16, 1));
  ASSERT_FALSE(out);
  EXPECT_EQ(out.error().code, status::timeout);
  std::uint32_t sent = 0;
  for (const auto& [id, script] : rig.carrier.workers) sent += script.exchanges;
  EXPECT_LE(sent, 9u);
}

TEST(source_suspect, a_timeout_is_reported_once_and_the_steps_replay_avoids_the_late_worker) {
  word coordinator;
  std::vector<std::pair<worker_id, incarnation_id>> reports;
  source_session_options wish = coordinator.wish({.call_deadline = 5 * k_millisecond});
  wish.report_late = [&](worker_id w, incarnation_id i) { reports.emplace_back(w, i); };
  session_rig rig(three_replicas(), wish);
  rig.carrier.workers[2].acts = behaviour::silent;
  ASSERT_TRUE(rig.session->step_begin(false));
  const inputs in(rig.shape, 16, 1);
  const auto late = rig.forward(in);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().why, reason::worker_late);
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_EQ(reports[0].first, worker_id(2));
  EXPECT_EQ(reports[0].second, rig.newest->workers[1].incarnation);

  const std::uint32_t before = rig.carrier.workers[2].exchanges;
  ASSERT_TRUE(rig.session->step_begin(true));
  EXPECT_EQ(rig.waited, 0);
  layer_call again = rig.call_of(in);
  again.deadline = k_ample;
  const auto out = rig.forward(again);
  ASSERT_TRUE(out) << out.error().text;
  expect_bits(*out, in.exact(rig.shape));
  EXPECT_EQ(rig.carrier.workers[2].exchanges, before);
}

TEST(source_suspect, who_was_late_is_better_than_who_is_suspect) {
  word coordinator;
  session_rig rig({.workers = 2, .slots_per_worker = 8}, coordinator.wish());
  rig.carrier.workers[2].acts = behaviour::silent;
  ASSERT_TRUE(rig.session->step_begin(false));
  const inputs in(rig.shape, 16, 1);
  layer_call hasty = rig.call_of(in);
  hasty.deadline = 5 * k_millisecond;
  ASSERT_FALSE(rig.forward(hasty));

  rig.carrier.workers[1].acts = behaviour::silent;
  rig.carrier.workers[2].acts = behaviour::answer;
  int turns = 0;
  rig.carrier.on_wait = [&] {
    if (++turns == 3) coordinator.suspect(*rig.newest, {0});
  };
  ASSERT_TRUE(rig.session->step_begin(true));
  const std::uint32_t before = rig.carrier.workers[2].exchanges;
  layer_call call = rig.call_of(in);
  call.deadline = 500 * k_millisecond;  // who was late is forgotten after a second
  auto out = rig.forward(call);
  ASSERT_TRUE(out) << out.error().text;
  expect_bits(*out, in.exact(rig.shape));
  EXPECT_EQ(rig.session->last_times().replays, 1u);
  EXPECT_EQ(rig.carrier.workers[2].exchanges, before + 1);

  // And so for a call that comes when both are known.
  const std::uint32_t sent = rig.carrier.workers[1].exchanges;
  ASSERT_TRUE(rig.session->step_begin(false));
  out = rig.forward(in);
  ASSERT_TRUE(out) << out.error().text;
  EXPECT_EQ(rig.session->last_times().replays, 0u);
  EXPECT_EQ(rig.carrier.workers[1].exchanges, sent);
}

TEST(source_suspect, a_suspicion_counts_though_all_replicas_were_late) {
  word coordinator;
  session_rig rig({.workers = 2, .slots_per_worker = 8}, coordinator.wish());
  for (const std::uint16_t w : {std::uint16_t{1}, std::uint16_t{2}}) {
    rig.carrier.workers[w].acts = behaviour::silent;
  }
  const inputs in(rig.shape, 16, 1);
  layer_call hasty = rig.call_of(in);
  hasty.deadline = 5 * k_millisecond;
  for (int turn = 0; turn < 2; ++turn) {  // one after the other is late
    ASSERT_TRUE(rig.session->step_begin(false));
    ASSERT_FALSE(rig.forward(hasty));
  }
  rig.carrier.workers[2].acts = behaviour::answer;
  const time_ns begun = monotonic_now();
  rig.carrier.on_wait = [&] {  // long after the call asked whether it can avoid both
    const bool due = monotonic_now() - begun > 40 * k_millisecond;
    if (due && coordinator.told == nullptr) coordinator.suspect(*rig.newest, {0});
  };
  ASSERT_TRUE(rig.session->step_begin(false));
  layer_call call = rig.call_of(in);
  call.deadline = 500 * k_millisecond;  // who was late is forgotten after a second
  const auto out = rig.forward(call);
  ASSERT_TRUE(out) << out.error().text;
  expect_bits(*out, in.exact(rig.shape));
  EXPECT_EQ(rig.session->last_times().replays, 1u);
}

}  // namespace
}  // namespace moetier::client::toy
