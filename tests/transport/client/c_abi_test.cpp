// Calls through the C ABI: what they compute, what they refuse, in which order they come.

#include "tests/transport/client/c_abi_rig.hpp"

namespace moetier::client::toy {
namespace {

TEST_F(c_abi, tells_the_model) {
  auto info = sized<moetier_model_info>();
  ASSERT_EQ(moetier_service_info(service, &info), MOETIER_OK);
  EXPECT_EQ(info.hidden_size, 10u);
  EXPECT_EQ(info.experts, 8u);
  EXPECT_EQ(info.top_k, 3u);
  ASSERT_EQ(info.moe_layer_count, 3u);
  EXPECT_EQ(info.moe_layers[1], 2);
  EXPECT_STREQ(info.model_type, "qwen3_moe");
  EXPECT_STREQ(info.carrier, "fake");
  EXPECT_EQ(info.workers_live, 3u);
  EXPECT_EQ(info.exact_allowed, 1u);
}

TEST_F(c_abi, serves_calls) {
  auto options = sized<moetier_session_options>();
  options.return_mode = MOETIER_RETURN_EXACT;
  options.micro_batches = 2;
  open(options);
  EXPECT_EQ(tier.attached, (std::vector<std::uint32_t>{1}));
  begin();
  call_rig a(tier.shape, 16, 1);
  call_rig b(tier.shape, 9, 2);
  b.call.micro_batch = 1;
  moetier_ticket first = 0;
  moetier_ticket second = 0;
  ASSERT_EQ(moetier_submit(session, &a.call, nullptr, &first), MOETIER_OK) << last_text();
  ASSERT_EQ(moetier_submit(session, &b.call, nullptr, &second), MOETIER_OK) << last_text();
  ASSERT_EQ(moetier_collect(session, second, &b.result, nullptr), MOETIER_OK) << last_text();
  ASSERT_EQ(moetier_collect(session, first, &a.result, nullptr), MOETIER_OK) << last_text();
  expect_bits(a.out, a.in.exact(tier.shape));
  expect_bits(b.out, b.in.exact(tier.shape));
  std::size_t count = 7;
  EXPECT_EQ(moetier_missing(session, first, nullptr, &count), MOETIER_OK);
  EXPECT_EQ(count, 0u);

  auto report = sized<moetier_step_report>();
  ASSERT_EQ(moetier_step_end(session, nullptr, &report), MOETIER_OK);
  EXPECT_EQ(report.status, 0u);
  EXPECT_EQ(report.calls, 2u);
  EXPECT_EQ(report.tokens, 25u);
  EXPECT_EQ(report.step, 1u);
  auto stats = sized<moetier_stats_snapshot>();
  ASSERT_EQ(moetier_stats(session, &stats), MOETIER_OK);
  EXPECT_EQ(stats.calls, 2u);
  EXPECT_EQ(stats.workers_live, 3u);
  const volatile moetier_status_word* words = moetier_status_words(session, &count);
  ASSERT_EQ(count, 2u);
  EXPECT_EQ(words[0].status, static_cast<std::uint32_t>(MOETIER_OK));
  EXPECT_EQ(words[1].layer, 2);
}

TEST_F(c_abi, takes_64_bit_ids_strides_and_tells_the_routing) {
  open();
  begin();
  call_rig r(tier.shape, 5, 3);
  const std::vector<std::int64_t> wide(r.in.ids.begin(), r.in.ids.end());
  std::vector<std::int64_t> padded(5 * 7, 99);
  for (std::size_t t = 0; t < 5; ++t) std::copy_n(&wide[t * 3], 3, &padded[t * 7]);
  tensor ids(padded, 5, 3, k_dl_i64);
  ids.strides[0] = 7;
  r.call.ids = &ids.dl;
  std::vector<std::int32_t> used(15);
  tensor used_ids(used, 5, 3, k_dl_i32);
  r.result.ids = &used_ids.dl;
  ASSERT_EQ(moetier_forward(session, &r.call, &r.result, nullptr), MOETIER_OK) << last_text();
  EXPECT_EQ(used, r.in.ids);
  expect_near(r.out, r.in.exact(tier.shape));
}

TEST_F(c_abi, writes_over_hidden_itself_but_not_half_over_it) {
  open();
  begin();
  call_rig r(tier.shape, 4, 3);
  const auto due = r.in.exact(tier.shape);
  tensor shifted(r.in.hidden, 4, 10, k_dl_f32);
  shifted.dl.data = r.in.hidden.data() - 10;
  r.result.output = &shifted.dl;
  moetier_ticket ticket = 0;
  ASSERT_EQ(moetier_submit(session, &r.call, nullptr, &ticket), MOETIER_OK);
  expect_refused(moetier_collect(session, ticket, &r.result, nullptr), MOETIER_INVALID,
                 "output is partly in hidden; allowed: hidden itself or memory apart from it");
  r.result.output = &r.hidden.dl;
  ASSERT_EQ(moetier_collect(session, ticket, &r.result, nullptr), MOETIER_OK);
  expect_near(r.in.hidden, due);
}

TEST_F(c_abi, takes_no_tokens_as_null) {
  open();
  begin();
  auto call = sized<moetier_call>();
  auto result = sized<moetier_result>();
  EXPECT_EQ(moetier_forward(session, &call, &result, nullptr), MOETIER_OK) << last_text();
}

TEST_F(c_abi, refuses_tensors_that_do_not_fit) {
  open();
  begin();
  const auto refused = [&](call_rig& r, const std::string& text,
                           moetier_status due = MOETIER_INVALID) {
    moetier_ticket ticket = 77;
    expect_refused(moetier_submit(session, &r.call, nullptr, &ticket), due, text);
    EXPECT_EQ(ticket, 0u);
  };
  const auto with = [&](auto change, const std::string& text,
                        moetier_status due = MOETIER_INVALID) {
    call_rig r(tier.shape, 4, 3);
    change(r);
    refused(r, text, due);
  };
  with([](call_rig& r) { r.hidden.shape[1] = 9; }, "hidden has shape [4, 9]; expected [T, 10]");
  with([](call_rig& r) { r.hidden.shape[0] = -1; }, "hidden has shape [-1, 10]; expected [T, 10]");
  with([](call_rig& r) { r.hidden.shape[0] = INT64_MAX; },
       "hidden has shape [9223372036854775807, 10]; expected [T, 10]");
  with([](call_rig& r) { r.hidden.shape[0] = 17; }, "17 tokens exceed the session's limit of 16");
  with([](call_rig& r) { r.hidden.dl.ndim = 1; }, "hidden has shape [4]; expected [T, 10]");
  with([](call_rig& r) { r.hidden.dl.shape = nullptr; },
       "hidden has shape of 2 dimensions; expected [T, 10]");
  with(
      [](call_rig& r) {
        r.hidden.dl.dtype = {kDLFloat, 64, 1};
      },
      "hidden has dtype float64; allowed: f32, f16 or bf16");
  with(
      [](call_rig& r) {
        r.ids.dl.dtype = {kDLUInt, 16, 2};
      },
      "ids has dtype uint16x2; allowed: i32 or i64");
  with([](call_rig& r) { r.hidden.dl.dtype = k_dl_i32; },
       "hidden has dtype i32; allowed: f32, f16 or bf16");
  with([](call_rig& r) { r.hidden.strides[1] = 2; },
       "the last stride of hidden is 2; allowed: 1: elements of a row lie side by side");
  with([](call_rig& r) { r.hidden.strides[0] = 3; },
       "the row stride of hidden is 3; allowed: 10 or more");
  with([](call_rig& r) { r.hidden.strides[0] = -10; },
       "the row stride of hidden is -10; allowed: 10 or more");
  with([](call_rig& r) { r.hidden.dl.data = nullptr; }, "hidden is null; allowed: data of [4, 10]");
  with(
      [](call_rig& r) {
        r.hidden.dl.device = {kDLROCM, 0};
      },
      "hidden on device type 10 is not enabled", MOETIER_UNSUPPORTED);
  with([](call_rig& r) { r.hidden.dl.dtype = k_dl_i64; },
       "hidden has dtype i64; allowed: f32, f16 or bf16");
  with([](call_rig& r) { r.ids.shape[0] = 3; }, "ids has shape [3, 3]; expected [4, 3]");
  with([](call_rig& r) { r.ids.dl.dtype = k_dl_f32; }, "ids has dtype f32; allowed: i32 or i64");
  with([](call_rig& r) { r.weights.dl.dtype = k_dl_i32; }, "weights has dtype i32; allowed: f32");
  with([](call_rig& r) { r.call.weights = nullptr; },
       "the routing input is ids without weights; allowed: either logits or ids with weights");
  with([](call_rig& r) { r.call.layer = 60000; },
       "layer 60000 is not served; MoE layers: 0, 2 to 3");
  std::vector<std::int64_t> wide(12, -1);
  wide[7] = std::int64_t{1} << 40;
  tensor ids(wide, 4, 3, k_dl_i64);
  with([&](call_rig& r) { r.call.ids = &ids.dl; },
       "row 2 position 1 names expert 1099511627776; allowed: -1 (none) or 0 to 7");
  EXPECT_TRUE(tier.carrier->keys.empty());

  // And the step goes on.
  call_rig good(tier.shape, 4, 3);
  EXPECT_EQ(moetier_forward(session, &good.call, &good.result, nullptr), MOETIER_OK);
}

TEST_F(c_abi, asks_for_the_deadline_class_of_its_options) {
  for (std::uint32_t wish = MOETIER_CLASS_DEFAULT; wish <= MOETIER_CLASS_BATCH; ++wish) {
    auto options = sized<moetier_session_options>();
    options.deadline_class = wish;
    moetier_session* made = nullptr;
    ASSERT_EQ(moetier_session_open(service, &options, &made), MOETIER_OK);
    const auto& told = tier.wishes.back().urgency;
    EXPECT_EQ(told.has_value(), wish != MOETIER_CLASS_DEFAULT);
    if (told) {
      EXPECT_EQ(*told, k_all_deadline_classes[wish - MOETIER_CLASS_DECODE]);
    }
    ASSERT_EQ(moetier_session_close(made), MOETIER_OK);
  }
}

TEST_F(c_abi, refuses_results_that_overlap_or_are_misaligned) {
  open();
  begin();
  call_rig r(tier.shape, 4, 3);
  std::vector<std::int32_t> used(14);
  std::vector<float> used_weights(13);
  tensor ids(used, 4, 3, k_dl_i32);
  tensor weights(used_weights, 4, 3, k_dl_f32);
  r.result.ids = &ids.dl;
  r.result.weights = &weights.dl;
  moetier_ticket ticket = 0;
  ASSERT_EQ(moetier_submit(session, &r.call, nullptr, &ticket), MOETIER_OK);
  const auto refused = [&](tensor& moved, void* to, const std::string& text) {
    void* const home = std::exchange(moved.dl.data, to);
    expect_refused(moetier_collect(session, ticket, &r.result, nullptr), MOETIER_INVALID, text);
    moved.dl.data = home;
  };
  const std::string apart = "; allowed: memory apart from it";
  refused(ids, r.out.data() + 39, "ids is partly in output" + apart);
  refused(weights, r.out.data(), "weights is partly in output" + apart);
  refused(weights, used.data() + 2, "weights is partly in ids" + apart);
  const std::string aligned = " is misaligned; allowed: rows aligned to 4 bytes";
  refused(ids, reinterpret_cast<std::byte*>(used.data()) + 2, "ids" + aligned);
  refused(weights, reinterpret_cast<std::byte*>(used_weights.data()) + 1, "weights" + aligned);
  ids.dl.byte_offset = 1;
  refused(ids, used.data(), "ids" + aligned);
  ids.dl.byte_offset = 0;

  // The ticket is still good; parts that only touch are apart.
  std::vector<float> row(12 + 40);
  weights.dl.data = row.data();
  r.output.dl.data = row.data() + 12;
  ASSERT_EQ(moetier_collect(session, ticket, &r.result, nullptr), MOETIER_OK) << last_text();
  r.out.assign(row.begin() + 12, row.end());
  expect_near(r.out, r.in.exact(tier.shape));
}

TEST_F(c_abi, refuses_more_experts_per_token_than_the_models) {
  auto options = sized<moetier_session_options>();
  options.top_k = 4;
  moetier_session* none = nullptr;
  expect_refused(moetier_session_open(service, &options, &none), MOETIER_INVALID,
                 "top_k is 4; at most 3");
  EXPECT_TRUE(tier.wishes.empty());
  options.top_k = 3;
  open(options);
}

TEST_F(c_abi, refuses_null_handles_and_pointers) {
  open();
  expect_refused(moetier_step_begin(nullptr, nullptr, nullptr), MOETIER_INVALID,
                 "session is null; allowed: a pointer");
  expect_refused(moetier_service_info(nullptr, nullptr), MOETIER_INVALID,
                 "service is null; allowed: a pointer");
  expect_refused(moetier_service_info(service, nullptr), MOETIER_INVALID,
                 "model info is null; allowed: a struct");
  begin();
  expect_refused(moetier_submit(session, nullptr, nullptr, nullptr), MOETIER_INVALID,
                 "ticket is null; allowed: a pointer");
  moetier_ticket ticket = 0;
  expect_refused(moetier_submit(session, nullptr, nullptr, &ticket), MOETIER_INVALID,
                 "call is null; allowed: a struct");
  expect_refused(moetier_collect(session, 5, nullptr, nullptr), MOETIER_INVALID,
                 "result is null; allowed: a struct");
  auto result = sized<moetier_result>();
  expect_refused(moetier_collect(session, 5, &result, nullptr), MOETIER_INVALID,
                 "ticket is 5; allowed: one of this session's newest tickets");
  EXPECT_EQ(moetier_event_fd(nullptr), -1);
  EXPECT_EQ(moetier_status_words(session, nullptr), nullptr);
}

TEST_F(c_abi, keeps_the_order_of_calls) {
  open();
  call_rig r(tier.shape, 4, 3);
  moetier_ticket ticket = 0;
  expect_refused(moetier_submit(session, &r.call, nullptr, &ticket), MOETIER_BAD_STATE,
                 "submit is not allowed here: no step was begun");
  begin();
  ASSERT_EQ(moetier_submit(session, &r.call, nullptr, &ticket), MOETIER_OK);
  ASSERT_EQ(moetier_collect(session, ticket, &r.result, nullptr), MOETIER_OK);
  expect_refused(moetier_collect(session, ticket, &r.result, nullptr), MOETIER_BAD_STATE,
                 fmt::format("collect is not allowed here: ticket {} has ended", ticket));
  expect_refused(moetier_service_close(service), MOETIER_BAD_STATE,
                 "service_close is not allowed here: 1 of its sessions are open");
}

TEST_F(c_abi, a_refused_result_of_forward_leaves_the_session_usable) {
  open();
  begin();
  call_rig r(tier.shape, 4, 3);
  r.output.shape[1] = 9;
  expect_refused(moetier_forward(session, &r.call, &r.result, nullptr), MOETIER_INVALID,
                 "output has shape [4, 9]; expected [T, 10]");
  r.output.shape[1] = 10;
  r.call.layer = 3;
  EXPECT_EQ(moetier_forward(session, &r.call, &r.result, nullptr), MOETIER_OK) << last_text();
}

TEST_F(c_abi, fails_a_step_with_a_typed_error_and_its_word) {
  auto options = sized<moetier_session_options>();
  options.call_deadline_ns = 3 * k_millisecond;
  open(options);
  tier.carrier->workers[2].acts = behaviour::silent;
  begin();
  call_rig r(tier.shape, 16, 3);
  EXPECT_EQ(moetier_forward(session, &r.call, &r.result, nullptr), MOETIER_TIMEOUT);
  const moetier_error* e = moetier_last_error();
  EXPECT_STREQ(e->reason, "worker_late");
  EXPECT_EQ(e->retryable, 1u);
  std::size_t count = 0;
  const volatile moetier_status_word* words = moetier_status_words(session, &count);
  EXPECT_EQ(words[0].status, static_cast<std::uint32_t>(MOETIER_TIMEOUT));
  EXPECT_EQ(words[0].late_worker, 2);
  EXPECT_GT(words[0].bytes_due, 0u);
  EXPECT_EQ(words[0].bytes_seen, 0u);
  expect_refused(moetier_forward(session, &r.call, &r.result, nullptr), MOETIER_SKIPPED,
                 "an earlier call of step 1 failed; replay the step");
  auto report = sized<moetier_step_report>();
  EXPECT_EQ(moetier_step_end(session, nullptr, &report), MOETIER_TIMEOUT);
  EXPECT_EQ(report.status, static_cast<std::uint32_t>(MOETIER_TIMEOUT));

  tier.publish(make_snapshot(tier.shape, 2));
  tier.carrier->workers[2].acts = behaviour::answer;
  auto replay = sized<moetier_step_options>();
  replay.replay = 1;
  ASSERT_EQ(moetier_step_begin(session, &replay, nullptr), MOETIER_OK);
  r.call.deadline_ns = k_ample;
  EXPECT_EQ(moetier_forward(session, &r.call, &r.result, nullptr), MOETIER_OK) << last_text();
  ASSERT_EQ(moetier_step_end(session, nullptr, &report), MOETIER_OK);
  EXPECT_EQ(report.attempts, 2u);
  EXPECT_EQ(report.generation, 2u);
}

TEST_F(c_abi, a_steps_replay_waits_for_a_snapshot_within_the_steps_deadline) {
  auto options = sized<moetier_session_options>();
  options.call_deadline_ns = ~0ull;
  open(options);
  call_rig r(tier.shape, 16, 3);
  auto replay = sized<moetier_step_options>();
  replay.replay = 1;
  for (const duration_ns deadline : {duration_ns{0}, 30 * k_millisecond}) {
    begin();
    tier.carrier->workers[2].acts = behaviour::stale;
    EXPECT_EQ(moetier_forward(session, &r.call, &r.result, nullptr), MOETIER_STALE_GENERATION);
    replay.deadline_ns = deadline;
    ASSERT_EQ(moetier_step_begin(session, &replay, nullptr), MOETIER_OK) << last_text();
    EXPECT_EQ(tier.waited, deadline == 0 ? 3600 * k_second : deadline);
    EXPECT_EQ(moetier_step_end(session, nullptr, nullptr), MOETIER_OK);
  }
}

TEST_F(c_abi, ends_calls_by_the_steps_deadline) {
  open();
  auto step = sized<moetier_step_options>();
  step.deadline_ns = 1;
  ASSERT_EQ(moetier_step_begin(session, &step, nullptr), MOETIER_OK);
  call_rig r(tier.shape, 4, 3);
  expect_refused(moetier_forward(session, &r.call, &r.result, nullptr), MOETIER_TIMEOUT,
                 "step 1 did not end within 0 ms");
}

TEST(c_abi_open, refuses_what_it_cannot_reach_or_does_not_know) {
  toy_tier tier;
  const auto text = [&](auto change) {
    auto options = at_tier();
    change(options);
    moetier_service* service = nullptr;
    const auto opened = abi::open_service(&options, &service, world_of(tier));
    if (opened) moetier_service_close(service);
    return opened ? "" : opened.error().text;
  };
  using options = moetier_service_options;
  EXPECT_EQ(text([](options& o) { o.address = nullptr; }), "address is null; allowed: host:port");
  EXPECT_EQ(text([](options& o) { o.address = "elsewhere:1"; }),
            "the coordinator is not reached: nobody answers");
  EXPECT_EQ(text([](options& o) { o.address = "spawn:/models/demo"; }),
            "an address of the kind spawn: is not enabled");
  moetier_tls tls{.size = sizeof(moetier_tls),
                  .version = MOETIER_VERSION,
                  .cert = "c.pem",
                  .key = nullptr,
                  .ca = "ca.pem",
                  .server_name = nullptr};
  EXPECT_EQ(text([&](options& o) { o.tls = &tls; }),
            "tls key is null; allowed: the path of a PEM file");
  tls.key = "c.key";
  EXPECT_EQ(text([&](options& o) { o.tls = &tls; }), "");
  tls.version = 9;
  EXPECT_EQ(text([&](options& o) { o.tls = &tls; }),
            "protocol version 9 of tls is not supported; supported: 1");
  EXPECT_EQ(text([](options& o) { o.model_fingerprint = 41; }),
            "the model's fingerprint is 0000000000000029; the tier serves 000000000000002a");
  EXPECT_EQ(text([](options& o) { o.model_fingerprint = 42; }), "");
}

TEST(c_abi_names, are_those_of_the_statuses) {
  EXPECT_EQ(moetier_abi_version(), 1u);
  EXPECT_STREQ(moetier_status_name(MOETIER_OK), "OK");
  EXPECT_STREQ(moetier_status_name(MOETIER_VERSION_MISMATCH), "VERSION");
  EXPECT_STREQ(moetier_status_name(MOETIER_SESSION_LOST), "SESSION_LOST");
}

}  // namespace
}  // namespace moetier::client::toy
