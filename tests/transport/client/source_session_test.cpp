#include "transport/client/source/source_session.hpp"

#include "tests/transport/client/session_rig.hpp"

namespace moetier::client::toy {
namespace {

// The static credit: whatever the session has outstanding, every worker has a bank for the next
// call.
TEST(source_session, has_room_at_every_worker_for_every_legal_submit) {
  for (std::uint32_t m = 1; m <= 4; ++m) {
    session_rig rig({}, {.micro_batches = m});
    for (const auto& w : rig.newest->workers) {
      rig.carrier.workers[w.worker.value].acts = behaviour::silent;
    }
    ASSERT_TRUE(rig.session->step_begin(false));
    const inputs in(rig.shape, 16, 1);  // tokens_max, and rows for every worker
    for (std::uint16_t u = 0; u < m; ++u) {
      layer_call call = rig.call_of(in);
      call.micro_batch = u;
      ASSERT_TRUE(rig.session->submit(call)) << m;
    }
    for (const auto& w : rig.newest->workers) {
      EXPECT_EQ(rig.carrier.workers[w.worker.value].exchanges, m);
    }
    rig.session->cancel();
  }
}

TEST(source_session, sums_partials_of_all_workers) {
  session_rig rig;
  ASSERT_TRUE(rig.session->step_begin(false));
  const inputs in(rig.shape, 16, 1);
  const auto out = rig.forward(in);
  ASSERT_TRUE(out) << out.error().text;
  expect_near(*out, in.exact(rig.shape));
  ASSERT_TRUE(rig.session->step_end());
}

TEST(source_session, exact_is_bitwise_equal_for_any_workers_replicas_and_chunks) {
  unsigned seed = 1;
  for (const std::uint32_t workers : {1u, 2u, 3u, 4u}) {
    for (const std::uint32_t spare : {0u, 1u, 3u}) {
      const tier_shape shape{.workers = workers,
                             .slots_per_worker = std::min(8u, (8 + workers - 1) / workers + spare)};
      for (const std::uint32_t rows : {0u, 1u, 3u, 5u}) {
        session_rig rig(shape, {.mode = kernels::return_mode::exact, .rows_per_chunk_max = rows});
        ASSERT_TRUE(rig.session);
        for (const std::uint32_t tokens : {0u, 1u, 2u, 7u, 16u}) {
          ASSERT_TRUE(rig.session->step_begin(false));
          const inputs in(shape, tokens, ++seed);
          const auto out = rig.forward(in);
          ASSERT_TRUE(out) << out.error().text;
          expect_bits(*out, in.exact(shape));
        }
      }
    }
  }
}

TEST(source_session, partial_differs_by_rounding_only_for_any_workers_replicas_and_chunks) {
  unsigned seed = 1;
  for (const std::uint32_t workers : {1u, 2u, 4u}) {
    for (const std::uint32_t rows : {0u, 1u, 5u}) {
      const tier_shape shape{.workers = workers, .slots_per_worker = 8};
      session_rig rig(shape, {.rows_per_chunk_max = rows});
      ASSERT_TRUE(rig.session->step_begin(false));
      const inputs in(shape, 13, ++seed);
      const auto out = rig.forward(in);
      ASSERT_TRUE(out) << out.error().text;
      expect_near(*out, in.exact(shape));
    }
  }
}

TEST(source_session, routes_by_the_snapshot_and_tells_what_it_routed) {
  session_rig rig({}, {.mode = kernels::return_mode::exact});
  ASSERT_TRUE(rig.session->step_begin(false));
  inputs in(rig.shape, 5, 3);
  std::vector<float> logits(5 * 8);
  std::minstd_rand random(4);
  std::uniform_real_distribution<float> value(-3.0F, 3.0F);
  for (float& l : logits) l = value(random);
  ASSERT_TRUE(kernels::route(rig.newest->routing, {},
                             {.logits = logits.data(), .pitch_bytes = 8 * 4, .tokens = 5}, in.ids,
                             in.weights));

  layer_call call = rig.call_of(in);
  call.ids = {};
  call.weights = {};
  call.logits = logits.data();
  call.logits_pitch = 8 * 4;
  ASSERT_TRUE(rig.session->submit(call));
  std::vector<float> out;
  layer_result result = rig.result_to(out, 5);
  std::vector<std::int32_t> ids(15);
  std::vector<float> weights(15);
  result.ids = ids;
  result.weights = weights;
  ASSERT_TRUE(rig.session->collect(0, result));
  EXPECT_EQ(ids, in.ids);
  EXPECT_EQ(weights, in.weights);
  expect_bits(out, in.exact(rig.shape));
}

TEST(source_session, sends_nothing_for_no_tokens_and_for_rows_without_experts) {
  session_rig rig;
  ASSERT_TRUE(rig.session->step_begin(false));
  ASSERT_TRUE(rig.session->submit({.layer = layer_id(0), .tokens = 0}));
  ASSERT_TRUE(rig.session->collect(0, {}));
  inputs in(rig.shape, 4, 1);
  std::fill(in.ids.begin(), in.ids.end(), -1);
  std::fill(in.weights.begin(), in.weights.end(), std::numeric_limits<float>::quiet_NaN());
  const auto out = rig.forward(in);
  ASSERT_TRUE(out);
  expect_bits(*out, std::vector<float>(out->size(), 0.0F));
  EXPECT_TRUE(rig.carrier.keys.empty());
}

TEST(source_session, sends_one_row_per_token_and_distinct_worker) {
  const tier_shape shape{.workers = 1, .slots_per_worker = 8};
  session_rig rig(shape);
  ASSERT_TRUE(rig.session->step_begin(false));
  ASSERT_TRUE(rig.forward(inputs(shape, 16, 1)));
  EXPECT_EQ(rig.carrier.workers[1].exchanges, 1u);
}

TEST(source_session, rounds_once_to_the_output_type_and_widens_inputs_exactly) {
  session_rig rig({}, {.mode = kernels::return_mode::exact});
  for (const dtype type : {dtype::f16, dtype::bf16}) {
    ASSERT_TRUE(rig.session->step_begin(false));
    inputs in(rig.shape, 6, 9);
    std::vector<std::uint16_t> narrow(in.hidden.size());
    const auto round = [&](float x) {
      return type == dtype::f16 ? f16_from_f32(x) : bf16_from_f32(x);
    };
    const auto widen = [&](std::uint16_t x) {
      return type == dtype::f16 ? f32_from_f16(x) : f32_from_bf16(x);
    };
    for (std::size_t i = 0; i < narrow.size(); ++i) {
      narrow[i] = round(in.hidden[i]);
      in.hidden[i] = widen(narrow[i]);
    }
    layer_call call = rig.call_of(in);
    call.hidden = narrow.data();
    call.hidden_type = type;
    call.hidden_pitch = rig.shape.hidden_size * 2;
    ASSERT_TRUE(rig.session->submit(call));
    // The output is the hidden tensor itself.
    ASSERT_TRUE(rig.session->collect(
        0, {.output = narrow.data(), .type = type, .pitch = call.hidden_pitch}));
    const auto due = in.exact(rig.shape);
    for (std::size_t i = 0; i < due.size(); ++i) ASSERT_EQ(narrow[i], round(due[i]));
  }
}

TEST(source_session, respects_row_pitches) {
  session_rig rig({}, {.mode = kernels::return_mode::exact});
  ASSERT_TRUE(rig.session->step_begin(false));
  const inputs in(rig.shape, 3, 2);
  const std::size_t width = rig.shape.hidden_size;
  const std::size_t pitch = width + 5;
  std::vector<float> wide(3 * pitch, 1e30F);
  for (std::size_t t = 0; t < 3; ++t) {
    std::copy_n(in.hidden.begin() + static_cast<std::ptrdiff_t>(t * width), width,
                wide.begin() + static_cast<std::ptrdiff_t>(t * pitch));
  }
  layer_call call = rig.call_of(in);
  call.hidden = wide.data();
  call.hidden_pitch = pitch * 4;
  ASSERT_TRUE(rig.session->submit(call));
  ASSERT_TRUE(rig.session->collect(0, {.output = wide.data(), .pitch = pitch * 4}));
  const auto due = in.exact(rig.shape);
  for (std::size_t t = 0; t < 3; ++t) {
    for (std::size_t h = 0; h < width; ++h) ASSERT_EQ(wide[t * pitch + h], due[t * width + h]);
    EXPECT_EQ(wide[t * pitch + width], 1e30F);
  }
}

TEST(source_session, interleaves_micro_batches_that_share_the_banks) {
  source_session_options wish{
      .micro_batches = 3, .mode = kernels::return_mode::exact, .rows_per_chunk_max = 2};
  session_rig rig({}, wish);
  for (const auto order : {std::array{0, 1, 2}, std::array{2, 1, 0}, std::array{1, 2, 0}}) {
    ASSERT_TRUE(rig.session->step_begin(false));
    std::vector<inputs> in;
    for (unsigned u = 0; u < 3; ++u) in.emplace_back(rig.shape, 16, 20 + u);
    for (std::uint16_t u = 0; u < 3; ++u) {
      layer_call call = rig.call_of(in[u]);
      call.micro_batch = u;
      ASSERT_TRUE(rig.session->submit(call));
    }
    for (const int u : order) {
      std::vector<float> out;
      const auto result = rig.result_to(out, 16);
      const auto ok = rig.session->collect(static_cast<std::uint16_t>(u), result);
      ASSERT_TRUE(ok) << ok.error().text;
      expect_bits(out, in[static_cast<std::size_t>(u)].exact(rig.shape));
    }
  }
}

TEST(source_session, never_reuses_a_key) {
  session_rig rig({}, {.micro_batches = 2, .rows_per_chunk_max = 3});
  for (int step = 0; step < 3; ++step) {
    ASSERT_TRUE(rig.session->step_begin(step == 2));
    for (const std::uint16_t layer : std::initializer_list<std::uint16_t>{0, 2, 3}) {
      for (std::uint16_t repeat = 0; repeat < 2; ++repeat) {
        for (std::uint16_t u = 0; u < 2; ++u) {
          const inputs in(rig.shape, 9, 3);
          layer_call call = rig.call_of(in);
          call.layer = layer_id(layer);
          call.micro_batch = u;
          call.repeat_idx = repeat;
          call.repeat_count = 2;
          ASSERT_TRUE(rig.forward(call));
        }
      }
    }
  }
  std::set<std::tuple<std::uint64_t, int, int, int, int, int>> seen;
  std::size_t exchanges = 0;
  for (const auto& [id, script] : rig.carrier.workers) exchanges += script.exchanges;
  for (const auto& key : rig.carrier.keys) {
    EXPECT_EQ(key.session, session_id(5));
    EXPECT_EQ(key.chunk_count, 3);
    seen.insert(
        {key.step, key.attempt, key.layer.value, key.micro_batch, key.repeat_idx, key.chunk});
  }
  EXPECT_EQ(seen.size(), 3u * 3 * 2 * 2 * 3);
  EXPECT_EQ(exchanges, rig.carrier.keys.size());
}

TEST(source_session, adopts_a_generation_between_steps_only) {
  session_rig rig({}, {.mode = kernels::return_mode::exact});
  ASSERT_TRUE(rig.session->step_begin(false));
  rig.publish(make_snapshot(rig.shape, 2));
  const inputs in(rig.shape, 4, 2);
  ASSERT_TRUE(rig.forward(in));
  EXPECT_EQ(rig.session->snapshot().generation, generation_number(1));
  EXPECT_EQ(rig.carrier.keys.back().generation, generation_number(1));
  ASSERT_TRUE(rig.session->step_begin(false));
  EXPECT_EQ(rig.session->snapshot().generation, generation_number(2));
  ASSERT_TRUE(rig.forward(in));
  EXPECT_EQ(rig.carrier.keys.back().generation, generation_number(2));
}

TEST(source_session, adopts_shares_of_its_generation_at_any_submit) {
  const tier_shape shape{.workers = 2, .slots_per_worker = 8};
  session_rig rig(shape, {.mode = kernels::return_mode::exact});
  ASSERT_TRUE(rig.session->step_begin(false));
  const inputs in(shape, 16, 2);
  ASSERT_TRUE(rig.forward(in));
  const auto before = rig.carrier.workers[1].exchanges;
  EXPECT_GT(before, 0u);
  rig.publish(make_snapshot(shape, 1, 2, {false, true}));
  layer_call call = rig.call_of(in);
  call.layer = layer_id(3);
  const auto out = rig.forward(call);
  ASSERT_TRUE(out);
  expect_bits(*out, in.exact(shape));
  EXPECT_EQ(rig.carrier.workers[1].exchanges, before);
}

TEST(source_session, counts_how_long_a_call_took) {
  session_rig rig;
  ASSERT_TRUE(rig.session->step_begin(false));
  ASSERT_TRUE(rig.forward(inputs(rig.shape, 16, 1)));
  const call_times& times = rig.session->last_times();
  EXPECT_GT(times.total, 0u);
  EXPECT_LE(times.route + times.pack + times.sum, times.total);
  EXPECT_EQ(times.replays, 0u);
}

}  // namespace
}  // namespace moetier::client::toy
