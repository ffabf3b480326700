#include <limits>

#include "tests/transport/client/session_rig.hpp"

// Every bad input is refused by a typed error with the numbers; nothing is sent, and neither the
// step nor the other micro-batches notice.
namespace moetier::client::toy {
namespace {

class source_input : public testing::Test {
 protected:
  source_input() : rig({}, {.micro_batches = 2}), in(rig.shape, 4, 1), call(rig.call_of(in)) {
    EXPECT_TRUE(rig.session->step_begin(false));
  }

  void expect_refused(status code, const std::string& text) {
    const auto ok = rig.session->submit(call);
    ASSERT_FALSE(ok);
    EXPECT_EQ(ok.error().text, text);
    EXPECT_EQ(ok.error().code, code);
    EXPECT_TRUE(rig.carrier.keys.empty());
  }
  void TearDown() override {
    // Nothing was harmed: the same layer still runs in this step.
    const inputs good(rig.shape, 4, 1);
    const auto out = rig.forward(rig.call_of(good));
    ASSERT_TRUE(out) << out.error().text;
    expect_near(*out, good.exact(rig.shape));
  }

  session_rig rig;
  inputs in;
  layer_call call;
};

TEST_F(source_input, refuses_a_wrong_dtype) {
  call.hidden_type = dtype::i32;
  expect_refused(status::invalid, "hidden has dtype i32; allowed: f32, f16 or bf16");
  call.hidden_type = dtype::other;
  expect_refused(status::invalid, "hidden has dtype other; allowed: f32, f16 or bf16");
}

TEST_F(source_input, refuses_a_wrong_logits_dtype) {
  call.ids = {};
  call.weights = {};
  call.logits = in.hidden.data();
  call.logits_type = dtype::u8;
  expect_refused(status::invalid, "logits has dtype u8; allowed: f32, f16 or bf16");
}

TEST_F(source_input, refuses_rows_that_overlap) {
  call.hidden_pitch = 36;
  expect_refused(status::invalid, "the row pitch of hidden is 36; allowed: 40 bytes or more");
}

TEST_F(source_input, refuses_null_and_misaligned_rows) {
  call.hidden = nullptr;
  expect_refused(status::invalid, "hidden is null; allowed: a [4, 10] tensor");
  call.hidden = reinterpret_cast<const char*>(in.hidden.data()) + 1;
  expect_refused(status::invalid, "hidden is misaligned; allowed: rows aligned to 4 bytes");
}

TEST_F(source_input, refuses_tokens_over_the_limit) {
  call.tokens = 17;
  expect_refused(status::invalid, "17 tokens exceed the session's limit of 16");
  call.tokens = 0xffffffffu;
  expect_refused(status::invalid, "4294967295 tokens exceed the session's limit of 16");
}

TEST_F(source_input, refuses_an_unknown_layer) {
  call.layer = layer_id(1);
  expect_refused(status::invalid, "layer 1 is not served; MoE layers: 0, 2 to 3");
}

TEST_F(source_input, refuses_an_unknown_micro_batch) {
  call.micro_batch = 2;
  expect_refused(status::invalid, "micro_batch is 2; allowed: 0 to 1");
}

TEST_F(source_input, refuses_ids_out_of_range) {
  in.ids[4] = 8;
  expect_refused(status::invalid, "row 1 position 1 names expert 8; allowed: -1 (none) or 0 to 7");
  in.ids[4] = -2;
  expect_refused(status::invalid, "row 1 position 1 names expert -2; allowed: -1 (none) or 0 to 7");
}

TEST_F(source_input, refuses_a_repeated_expert) {
  in.ids[6] = in.ids[7] = 5;
  expect_refused(status::invalid, "row 2 names expert 5 twice");
}

TEST_F(source_input, refuses_weights_that_are_not_finite) {
  in.ids[3] = 0;
  in.ids[4] = 1;
  in.ids[5] = 2;
  in.weights[5] = std::numeric_limits<float>::infinity();
  expect_refused(status::invalid, "row 1 column 2 of the router input is not finite");
  in.weights[5] = std::numeric_limits<float>::quiet_NaN();
  expect_refused(status::invalid, "row 1 column 2 of the router input is not finite");
}

TEST_F(source_input, refuses_logits_that_are_not_finite_or_leave_too_few) {
  std::vector<float> logits(4 * 8, 0.5F);
  call.ids = {};
  call.weights = {};
  call.logits = logits.data();
  call.logits_pitch = 32;
  logits[8 + 3] = std::numeric_limits<float>::quiet_NaN();
  expect_refused(status::invalid, "row 1 column 3 of the router input is not finite");
  logits[8 + 3] = std::numeric_limits<float>::infinity();
  expect_refused(status::invalid, "row 1 column 3 of the router input is not finite");
  for (int e = 0; e < 6; ++e) logits[8 + e] = -std::numeric_limits<float>::infinity();
  expect_refused(status::invalid, "row 1 has 2 selectable experts; 3 are needed");
}

TEST_F(source_input, refuses_both_kinds_of_routing_input_and_none) {
  call.logits = in.hidden.data();
  expect_refused(status::invalid,
                 "the routing input is logits and ids; allowed: either logits or ids with weights");
  call.logits = nullptr;
  call.ids = {};
  call.weights = {};
  expect_refused(status::invalid,
                 "the routing input is absent; allowed: either logits or ids with weights");
}

TEST_F(source_input, refuses_picks_of_the_wrong_count) {
  call.ids = std::span(in.ids).first(11);
  expect_refused(status::invalid, "ids has shape [11]; expected [4, 3]");
  call.ids = in.ids;
  call.weights = {};
  expect_refused(status::invalid,
                 "the routing input is ids without weights; allowed: either logits or ids with "
                 "weights");
  call.ids = {};
  call.weights = std::span(in.weights).first(12);
  expect_refused(status::invalid,
                 "the routing input is weights without ids; allowed: either logits or ids with "
                 "weights");
}

TEST_F(source_input, refuses_repeats_out_of_order) {
  call.repeat_count = 0;
  expect_refused(status::invalid, "repeat_count is 0; allowed: 1 to 16");
  call.repeat_count = 17;
  expect_refused(status::invalid, "repeat_count is 17; allowed: 1 to 16");
  call.repeat_count = 2;
  call.repeat_idx = 1;
  expect_refused(status::bad_state, "repeat_idx 1 is not allowed here: layer 2 is at repeat_idx 0");
}

TEST(source_order, a_layer_runs_its_repeats_once_in_a_step) {
  session_rig rig;
  const inputs in(rig.shape, 4, 1);
  layer_call call = rig.call_of(in);
  const auto refused = [&](const char* text) {
    const auto ok = rig.session->submit(call);
    ASSERT_FALSE(ok);
    EXPECT_EQ(ok.error().text, text);
    EXPECT_EQ(ok.error().code, status::bad_state);
  };
  refused("submit is not allowed here: no step was begun");
  ASSERT_TRUE(rig.session->step_begin(false));
  call.repeat_count = 2;
  ASSERT_TRUE(rig.forward(call));
  refused("repeat_idx 0 is not allowed here: layer 2 is at repeat_idx 1");
  call.repeat_count = 3;
  call.repeat_idx = 1;
  refused("repeat_count 3 is not allowed here: layer 2 runs 2 times in a step");
  call.repeat_count = 2;
  ASSERT_TRUE(rig.forward(call));
  refused("submit is not allowed here: layer 2 has run its 2 times in this step");
  ASSERT_TRUE(rig.session->step_begin(false));
  call.repeat_idx = 0;
  ASSERT_TRUE(rig.forward(call));
}

TEST(source_order, one_call_of_a_micro_batch_is_outstanding) {
  session_rig rig;
  const inputs in(rig.shape, 4, 1);
  layer_call call = rig.call_of(in);
  std::vector<float> out;
  const auto result = rig.result_to(out, 4);
  EXPECT_EQ(rig.session->collect(0, result).error().text,
            "collect is not allowed here: micro-batch 0 has no outstanding call");
  EXPECT_EQ(rig.session->collect(1, result).error().text, "micro_batch is 1; allowed: 0 to 0");
  ASSERT_TRUE(rig.session->step_begin(false));
  ASSERT_TRUE(rig.session->submit(call));
  call.layer = layer_id(3);
  EXPECT_EQ(rig.session->submit(call).error().text,
            "submit is not allowed here: micro-batch 0 has an uncollected call");
  EXPECT_EQ(rig.session->step_begin(false).error().text,
            "step_begin is not allowed here: a call of the step is not collected");
  EXPECT_EQ(rig.session->step_end().error().text,
            "step_end is not allowed here: a call of the step is not collected");
  // A wrong result tensor does not cost the call its rows.
  EXPECT_EQ(
      rig.session->collect(0, {.output = out.data(), .type = dtype::i64, .pitch = 80}).error().text,
      "output has dtype i64; allowed: f32, f16 or bf16");
  EXPECT_EQ(rig.session->collect(0, {.output = nullptr, .pitch = 40}).error().text,
            "output is null; allowed: a [4, 10] tensor");
  ASSERT_TRUE(rig.session->collect(0, result));
  expect_near(out, in.exact(rig.shape));
  ASSERT_TRUE(rig.session->step_end());
  EXPECT_EQ(rig.session->step_end().error().text,
            "step_end is not allowed here: no step was begun");
}

TEST(source_open, refuses_sizes_out_of_bounds) {
  const auto text = [](source_session_options wish) {
    session_rig rig({}, wish);
    return rig.open_error ? rig.open_error->text : "";
  };
  EXPECT_EQ(text({.tokens_max = 4097}), "tokens_max is 4097; allowed: 1 to 4096");
  EXPECT_EQ(text({.micro_batches = 5}), "micro_batches is 5; allowed: 1 to 4");
  EXPECT_EQ(text({.micro_batches = 0}), "micro_batches is 0; allowed: 1 to 4");
  EXPECT_EQ(text({.top_k = 9}), "top_k is 9; allowed: 1 to 8");
  EXPECT_EQ(text({}), "");
}

TEST(source_open, refuses_exact_where_rows_are_not_invariant) {
  scripted_carrier carrier;
  auto snapshot = make_snapshot({});
  snapshot.exact_allowed = false;
  const auto opened = source_session::open(
      carrier, {.tokens_max = 4, .top_k = 3, .mode = kernels::return_mode::exact},
      std::make_shared<const transport::routing_snapshot>(snapshot));
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().text,
            "return_mode exact (the tier's backend is not row_invariant) is not enabled");
}

TEST(source_order, a_session_keeps_to_its_model) {
  session_rig rig;
  auto next = make_snapshot(rig.shape, 2);
  next.model.fingerprint = 43;
  rig.publish(std::move(next));
  const auto ok = rig.session->step_begin(false);
  ASSERT_FALSE(ok);
  EXPECT_EQ(ok.error().code, status::model_mismatch);
  EXPECT_EQ(ok.error().text, "the tier serves another model than the one session 5 was opened for");
}

}  // namespace
}  // namespace moetier::client::toy
