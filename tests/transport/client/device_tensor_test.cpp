// Tensors in device memory through the C interface, on a stand-in for the CUDA driver.

#include <array>
#include <string>

#include "tests/transport/client/placed_tensor.hpp"
#include "tests/transport/client/session_rig.hpp"

namespace moetier::client::toy {
namespace {

void* stream_of(std::uintptr_t number) { return reinterpret_cast<void*>(number); }

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

class device_tensors : public testing::Test {
 protected:
  device_tensors() { tier.driver_library = MOETIER_FAKE_DRIVER; }
  void SetUp() override { fake_reset(); }
  void TearDown() override {
    close();
    EXPECT_EQ(fake_pinned(), 0u);
    EXPECT_EQ(fake_retained(), 0);
    EXPECT_EQ(fake_depth(), 0u);
    EXPECT_EQ(fake_queued(), 0u);
  }
  void open(moetier_session_options options = sized<moetier_session_options>()) {
    const auto at = at_tier();
    ASSERT_TRUE(abi::open_service(&at, &service, world_of(tier)));
    ASSERT_EQ(moetier_session_open(service, &options, &session), MOETIER_OK) << last_text();
    begin();
  }
  void begin() {
    ASSERT_EQ(moetier_step_begin(session, nullptr, nullptr), MOETIER_OK) << last_text();
  }
  void close() {
    if (session != nullptr) {
      EXPECT_EQ(moetier_session_close(std::exchange(session, nullptr)), MOETIER_OK);
    }
    if (service != nullptr) {
      EXPECT_EQ(moetier_service_close(std::exchange(service, nullptr)), MOETIER_OK);
    }
  }
  void expect_refused(moetier_status got, moetier_status due, const std::string& text) {
    EXPECT_EQ(got, due);
    EXPECT_EQ(last_text(), text);
  }
  std::vector<float> due(const placed_call& c) const { return c.in.exact(tier.shape); }
  std::size_t sent() const { return tier.carrier->keys.size(); }

  toy_tier tier;
  moetier_service* service = nullptr;
  moetier_session* session = nullptr;
};

// --- rows and bits ------------------------------------------------------------------------------

struct all_kinds {
  dense_rows hidden;
  dense_rows routing;  // ids, or logits without weights
  dense_rows weights;
  bool by_logits = false;
};

std::vector<all_kinds> kinds_of(const tier_shape& shape, std::int64_t tokens) {
  const inputs in(shape, static_cast<std::uint32_t>(tokens), 4);
  std::vector<std::uint16_t> bf16;
  std::vector<std::uint16_t> f16;
  for (const float x : in.hidden) {
    bf16.push_back(static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(x) >> 16));
    f16.push_back(static_cast<std::uint16_t>(0x3c00u + (bf16.back() & 0x83ffu)));
  }
  std::vector<float> logits;
  for (std::size_t i = 0; i < static_cast<std::size_t>(tokens) * shape.experts; ++i)
    logits.push_back(static_cast<float>(i * 37 % 101) * 0.125F);
  const std::vector<std::int64_t> wide(in.ids.begin(), in.ids.end());
  const auto h = std::int64_t{shape.hidden_size};
  const auto k = std::int64_t{shape.top_k};
  const auto weights = dense(in.weights, tokens, k, k_dl_f32);
  return {
      {dense(in.hidden, tokens, h, k_dl_f32), dense(in.ids, tokens, k, k_dl_i32), weights},
      {dense(bf16, tokens, h, k_dl_bf16), dense(wide, tokens, k, k_dl_i64), weights},
      {dense(f16, tokens, h, k_dl_f16), dense(logits, tokens, shape.experts, k_dl_f32), {}, true}};
}

// Output, ids, weights and flags of one call whose tensors lie as told.
std::array<std::vector<std::byte>, 4> results_of(moetier_session* session, const all_kinds& given,
                                                 const tier_shape& shape,
                                                 placed_tensor::layout with_gaps, void* stream) {
  const std::int64_t tokens = given.hidden.rows;
  const placed_tensor::layout side_by_side{with_gaps.device, 0, with_gaps.offset};
  placed_tensor hidden(given.hidden, with_gaps);
  placed_tensor routing(given.routing, with_gaps);
  placed_tensor weights(given.weights, with_gaps);
  dense_rows blank = given.hidden;
  std::fill(blank.bytes.begin(), blank.bytes.end(), std::byte{0x77});
  placed_tensor output(blank, with_gaps);
  const auto picks = static_cast<std::size_t>(tokens) * shape.top_k;
  placed_tensor used_ids(dense(std::vector<std::int32_t>(picks, 77), tokens, shape.top_k, k_dl_i32),
                         side_by_side);
  placed_tensor used_weights(dense(std::vector<float>(picks, 77), tokens, shape.top_k, k_dl_f32),
                             side_by_side);
  placed_tensor bad_rows(
      dense(std::vector<std::uint8_t>(static_cast<std::size_t>(tokens), 77), tokens, 1, k_dl_u8, 1),
      side_by_side);
  auto call = sized<moetier_call>();
  call.layer = 2;
  call.hidden = &hidden.dl;
  if (given.by_logits) {
    call.logits = &routing.dl;
  } else {
    call.ids = &routing.dl;
    call.weights = &weights.dl;
  }
  auto result = sized<moetier_result>();
  result.output = &output.dl;
  result.ids = &used_ids.dl;
  result.weights = &used_weights.dl;
  result.bad_rows = &bad_rows.dl;
  EXPECT_EQ(moetier_step_begin(session, nullptr, nullptr), MOETIER_OK) << last_text();
  EXPECT_EQ(moetier_forward(session, &call, &result, stream), MOETIER_OK) << last_text();
  for (placed_tensor* t :
       {&hidden, &routing, &weights, &output, &used_ids, &used_weights, &bad_rows}) {
    EXPECT_TRUE(t->has_poison_around_rows());
  }
  EXPECT_EQ(hidden.bytes(), given.hidden.bytes);
  return {output.bytes(), used_ids.bytes(), used_weights.bytes(), bad_rows.bytes()};
}

TEST_F(device_tensors, give_the_bits_of_host_tensors_in_every_type_and_layout) {
  auto options = sized<moetier_session_options>();
  options.bad_rows = MOETIER_BAD_ROWS_FLAG;
  // Which replica a row goes to rests on the session's number and its step, so each call is the
  // first of such a session.
  const auto run = [&](const all_kinds& given, placed_tensor::layout where, void* stream) {
    fake_reset();
    tier.next_session = 1;
    open(options);
    auto results = results_of(session, given, tier.shape, where, stream);
    close();
    return results;
  };
  for (const std::uint32_t mode : {MOETIER_RETURN_PARTIAL, MOETIER_RETURN_EXACT}) {
    options.return_mode = mode;
    for (const std::int64_t tokens : {1, 5, 16}) {
      for (const all_kinds& given : kinds_of(tier.shape, tokens)) {
        const auto on_host = run(given, {.device = k_host}, nullptr);
        for (const std::int64_t gap : {0, 3}) {
          for (const std::uint64_t offset : {std::uint64_t{0}, std::uint64_t{16}}) {
            EXPECT_EQ(run(given, {1, gap, offset}, stream_of(9)), on_host);
          }
        }
      }
    }
  }
}

TEST_F(device_tensors, carry_token_ids_and_adapter_ids) {
  transport::routing_snapshot snapshot = make_snapshot(tier.shape);
  snapshot.lora = true;
  snapshot.adapters = {0, 3};
  snapshot.model.routing.method = snapshot.routing.rule.method = routing_method::deepseek_v4;
  auto tables = std::make_shared<routing_tables>(*snapshot.tables);
  for (layer_routing& l : tables->layers) {
    l.table = {0, 1, 2, 3, 4, 5};
    l.table_rows = 2;
  }
  snapshot.tables = tables;
  tier.history.clear();
  tier.publish(std::move(snapshot));
  open();
  placed_call c(tier.shape, 4, 3);
  std::vector<float> flat(4 * 8, 0.5F);
  placed_tensor logits(dense(flat, 4, 8, k_dl_f32), {});
  placed_tensor tokens(dense(std::vector<std::int64_t>{1, 0, 1, 0}, 4, 1, k_dl_i64, 1), {});
  placed_tensor used(dense(std::vector<std::int32_t>(12, -5), 4, 3, k_dl_i32), {});
  c.call.ids = nullptr;
  c.call.weights = nullptr;
  c.call.logits = &logits.dl;
  c.call.token_ids = &tokens.dl;
  c.result.ids = &used.dl;
  ASSERT_EQ(moetier_forward(session, &c.call, &c.result, nullptr), MOETIER_OK) << last_text();
  EXPECT_EQ(used.read<std::int32_t>(),
            (std::vector<std::int32_t>{3, 4, 5, 0, 1, 2, 3, 4, 5, 0, 1, 2}));
  placed_tensor adapters(dense(std::vector<std::int32_t>{-1, 0, 1, 3}, 4, 1, k_dl_i32, 1), {});
  c.call.adapter_ids = &adapters.dl;
  moetier_ticket ticket = 0;
  expect_refused(moetier_submit(session, &c.call, nullptr, &ticket), MOETIER_UNSUPPORTED,
                 "adapters: row 2 names adapter 1; loaded: 0, 3");
  placed_tensor listed(dense(std::vector<std::int32_t>{-1, 0, -1, 3}, 4, 1, k_dl_i32, 1), {});
  placed_tensor unknown(dense(std::vector<std::int32_t>{1, 0, 2, 0}, 4, 1, k_dl_i32, 1), {});
  c.call.adapter_ids = &listed.dl;
  c.call.token_ids = &unknown.dl;
  begin();
  expect_refused(moetier_submit(session, &c.call, nullptr, &ticket), MOETIER_INVALID,
                 "row 2 has token id 2; allowed: 0 to 1");
}

TEST_F(device_tensors, may_take_the_output_in_hidden_itself_but_not_half_over_it) {
  open();
  placed_call c(tier.shape, 4, 3);
  const auto rows = due(c);
  DLTensor shifted = c.hidden.dl;
  shifted.byte_offset += 40;
  std::int64_t three[2] = {4, 10};
  shifted.shape = three;
  c.result.output = &shifted;
  moetier_ticket ticket = 0;
  ASSERT_EQ(moetier_submit(session, &c.call, stream_of(4), &ticket), MOETIER_OK) << last_text();
  expect_refused(moetier_collect(session, ticket, &c.result, stream_of(4)), MOETIER_INVALID,
                 "output is partly in hidden; allowed: hidden itself or memory apart from it");
  placed_tensor used(dense(c.in.ids, 4, 3, k_dl_i32), {});
  DLTensor inside = c.hidden.dl;
  inside.shape = used.dl.shape;
  inside.strides = used.dl.strides;
  inside.dtype = k_dl_i32;
  c.result.output = &c.hidden.dl;
  c.result.ids = &inside;
  expect_refused(moetier_collect(session, ticket, &c.result, stream_of(4)), MOETIER_INVALID,
                 "ids is partly in output; allowed: memory apart from it");
  c.result.ids = nullptr;
  ASSERT_EQ(moetier_collect(session, ticket, &c.result, stream_of(4)), MOETIER_OK) << last_text();
  expect_near(c.hidden.read<float>(), rows);
}

// --- order --------------------------------------------------------------------------------------

TEST_F(device_tensors, are_read_and_written_behind_what_their_stream_holds) {
  open();
  placed_call c(tier.shape, 4, 3);
  const auto hidden = c.in.hidden;
  std::memset(c.hidden.row(0), 0, 160);
  fake_enqueue(stream_of(7), c.hidden.row(0), hidden.data(), 160);
  std::vector<float> other(40, 3.0F);
  fake_enqueue(stream_of(8), c.hidden.row(0), other.data(), 160);  // nobody waits for this stream
  moetier_ticket ticket = 0;
  ASSERT_EQ(moetier_submit(session, &c.call, stream_of(7), &ticket), MOETIER_OK) << last_text();
  EXPECT_EQ(std::string(fake_log()),
            "cuInit\npinned 2560 bytes\n"
            "stream 7: 1 x 160 bytes from cuda:0\n"
            "stream 7: 1 x 48 bytes from cuda:0\n"
            "stream 7: 1 x 48 bytes from cuda:0\n"
            "stream 7: synchronised\n");
  // Submit has read its inputs, so they may change.
  std::memset(c.hidden.row(0), 0x33, 160);
  fake_enqueue(stream_of(7), c.output.row(0), other.data(), 160);
  fake_clear_log();
  ASSERT_EQ(moetier_collect(session, ticket, &c.result, stream_of(7)), MOETIER_OK);
  EXPECT_EQ(std::string(fake_log()), "stream 7: 1 x 160 bytes to cuda:0\nstream 7: synchronised\n");
  expect_near(c.output.read<float>(), due(c));
  EXPECT_EQ(fake_queued(), 1u);  // stream 8's
  fake_reset();
}

TEST_F(device_tensors, of_two_micro_batches_and_two_devices_may_interleave) {
  auto options = sized<moetier_session_options>();
  options.micro_batches = 2;
  open(options);
  placed_call a(tier.shape, 16, 1, {.device = 0});
  placed_call b(tier.shape, 9, 2, {.device = 1});
  b.call.micro_batch = 1;
  moetier_ticket first = 0;
  moetier_ticket second = 0;
  ASSERT_EQ(moetier_submit(session, &a.call, stream_of(5), &first), MOETIER_OK) << last_text();
  ASSERT_EQ(moetier_submit(session, &b.call, stream_of(6), &second), MOETIER_OK) << last_text();
  std::swap(a.result.output, b.result.output);
  expect_refused(moetier_collect(session, first, &a.result, stream_of(5)), MOETIER_INVALID,
                 "output has shape [9, 10]; expected [16, 10]");
  std::swap(a.result.output, b.result.output);
  ASSERT_EQ(moetier_collect(session, second, &b.result, stream_of(6)), MOETIER_OK) << last_text();
  ASSERT_EQ(moetier_collect(session, first, &a.result, stream_of(5)), MOETIER_OK) << last_text();
  expect_near(a.output.read<float>(), due(a));
  expect_near(b.output.read<float>(), due(b));
  EXPECT_EQ(fake_pinned(), 1u);
  EXPECT_EQ(fake_retained(), 2);
}

TEST_F(device_tensors, of_two_sessions_do_not_meet) {
  open();
  moetier_session* other = nullptr;
  ASSERT_EQ(moetier_session_open(service, nullptr, &other), MOETIER_OK) << last_text();
  ASSERT_EQ(moetier_step_begin(other, nullptr, nullptr), MOETIER_OK);
  placed_call a(tier.shape, 16, 1);
  placed_call b(tier.shape, 16, 2);
  moetier_ticket first = 0;
  moetier_ticket second = 0;
  ASSERT_EQ(moetier_submit(session, &a.call, nullptr, &first), MOETIER_OK) << last_text();
  ASSERT_EQ(moetier_submit(other, &b.call, nullptr, &second), MOETIER_OK) << last_text();
  EXPECT_EQ(fake_pinned(), 2u);
  ASSERT_EQ(moetier_collect(session, first, &a.result, nullptr), MOETIER_OK) << last_text();
  EXPECT_EQ(moetier_session_close(std::exchange(session, other)), MOETIER_OK);
  EXPECT_EQ(fake_pinned(), 1u);
  EXPECT_EQ(fake_retained(), 1);
  ASSERT_EQ(moetier_collect(session, second, &b.result, nullptr), MOETIER_OK) << last_text();
  expect_near(a.output.read<float>(), due(a));
  expect_near(b.output.read<float>(), due(b));
}

TEST_F(device_tensors, refuse_a_stream_that_is_captured_and_keep_the_ticket) {
  open();
  placed_call c(tier.shape, 4, 3);
  moetier_ticket ticket = 0;
  fake_capture(stream_of(5), 1);
  expect_refused(moetier_submit(session, &c.call, stream_of(5), &ticket), MOETIER_BAD_STATE,
                 "submit is not allowed here: the stream is being captured");
  ASSERT_EQ(moetier_submit(session, &c.call, stream_of(6), &ticket), MOETIER_OK) << last_text();
  expect_refused(moetier_collect(session, ticket, &c.result, stream_of(5)), MOETIER_BAD_STATE,
                 "collect is not allowed here: the stream is being captured");
  fake_capture(stream_of(5), 0);
  ASSERT_EQ(moetier_collect(session, ticket, &c.result, stream_of(5)), MOETIER_OK) << last_text();
  expect_near(c.output.read<float>(), due(c));
}

// --- refusals -----------------------------------------------------------------------------------

TEST_F(device_tensors, of_one_call_lie_at_one_place) {
  open();
  placed_call on_host(tier.shape, 4, 3, {.device = k_host});
  placed_call c(tier.shape, 4, 3);
  placed_call next_door(tier.shape, 4, 3, {.device = 1});
  moetier_ticket ticket = 0;
  c.call.ids = &on_host.ids.dl;
  expect_refused(moetier_submit(session, &c.call, nullptr, &ticket), MOETIER_INVALID,
                 "ids is in host memory; allowed: on cuda:0, as hidden");
  c.call.ids = &c.ids.dl;
  c.call.weights = &next_door.weights.dl;
  expect_refused(moetier_submit(session, &c.call, nullptr, &ticket), MOETIER_INVALID,
                 "weights is on cuda:1; allowed: on cuda:0, as hidden");
  c.call.weights = &c.weights.dl;
  on_host.call.weights = &c.weights.dl;
  expect_refused(moetier_submit(session, &on_host.call, nullptr, &ticket), MOETIER_INVALID,
                 "weights is on cuda:0; allowed: in host memory, as hidden");
  on_host.call.weights = &on_host.weights.dl;
  EXPECT_STREQ(fake_log(), "");
  EXPECT_EQ(sent(), 0u);

  ASSERT_EQ(moetier_submit(session, &c.call, nullptr, &ticket), MOETIER_OK) << last_text();
  expect_refused(moetier_collect(session, ticket, &on_host.result, nullptr), MOETIER_INVALID,
                 "output is in host memory; allowed: on cuda:0, as hidden");
  expect_refused(moetier_collect(session, ticket, &next_door.result, nullptr), MOETIER_INVALID,
                 "output is on cuda:1; allowed: on cuda:0, as hidden");
  c.result.ids = &on_host.ids.dl;
  expect_refused(moetier_collect(session, ticket, &c.result, nullptr), MOETIER_INVALID,
                 "ids is in host memory; allowed: on cuda:0, as hidden");
  c.result.ids = nullptr;
  ASSERT_EQ(moetier_collect(session, ticket, &c.result, nullptr), MOETIER_OK) << last_text();
  begin();
  expect_refused(moetier_forward(session, &on_host.call, &c.result, nullptr), MOETIER_INVALID,
                 "output is on cuda:0; allowed: in host memory, as hidden");
}

TEST_F(device_tensors, that_do_not_fit_are_refused_before_a_byte_moves) {
  open();
  placed_call c(tier.shape, 4, 3);
  moetier_ticket ticket = 0;
  const auto refused = [&](auto&& change, const std::string& text) {
    DLTensor hidden = c.hidden.dl;
    std::int64_t shape[2] = {4, 10};
    hidden.shape = shape;
    change(hidden);
    c.call.hidden = &hidden;
    expect_refused(moetier_submit(session, &c.call, nullptr, &ticket), MOETIER_INVALID, text);
    c.call.hidden = &c.hidden.dl;
  };
  refused([](DLTensor& t) { t.dtype = k_dl_i64; },
          "hidden has dtype i64; allowed: f32, f16 or bf16");
  refused([](DLTensor& t) { t.shape[0] = 17; }, "17 tokens exceed the session's limit of 16");
  refused([](DLTensor& t) { t.shape[1] = 9; }, "hidden has shape [4, 9]; expected [T, 10]");
  refused([](DLTensor& t) { t.data = nullptr; }, "hidden is null; allowed: data of [4, 10]");
  refused([](DLTensor& t) { t.byte_offset = 2; },
          "hidden is misaligned; allowed: rows aligned to 4 bytes");
  refused([](DLTensor& t) { t.device.device_id = -1; },
          "the device of hidden is -1; allowed: 0 or more");
  EXPECT_STREQ(fake_log(), "");
  EXPECT_EQ(moetier_forward(session, &c.call, &c.result, nullptr), MOETIER_OK) << last_text();
}

TEST_F(device_tensors, load_no_driver_for_host_tensors_or_no_tokens) {
  open();
  placed_call c(tier.shape, 4, 3, {.device = k_host});
  c.ids.dl.device = {kDLCUDAHost, 0};  // pinned: host memory like any other
  EXPECT_EQ(moetier_forward(session, &c.call, &c.result, nullptr), MOETIER_OK) << last_text();
  expect_near(c.output.read<float>(), due(c));
  auto nothing = sized<moetier_call>();
  auto nowhere = sized<moetier_result>();
  EXPECT_EQ(moetier_forward(session, &nothing, &nowhere, stream_of(5)), MOETIER_OK) << last_text();
  placed_call empty(tier.shape, 0, 3);
  begin();
  EXPECT_EQ(moetier_forward(session, &empty.call, &empty.result, stream_of(5)), MOETIER_OK)
      << last_text();
  begin();
  moetier_ticket ticket = 0;
  expect_refused(moetier_submit(session, &c.call, stream_of(5), &ticket), MOETIER_UNSUPPORTED,
                 "a stream for tensors in host memory is not enabled");
  ASSERT_EQ(moetier_submit(session, &c.call, nullptr, &ticket), MOETIER_OK);
  expect_refused(moetier_collect(session, ticket, &c.result, stream_of(5)), MOETIER_UNSUPPORTED,
                 "a stream for tensors in host memory is not enabled");
  EXPECT_EQ(moetier_collect(session, ticket, &c.result, nullptr), MOETIER_OK) << last_text();
  EXPECT_STREQ(fake_log(), "");
}

TEST_F(device_tensors, without_a_driver_or_device_say_what_lacks) {
  const auto refused = [&](const std::string& library, const std::string& what) {
    tier.driver_library = library;
    open();
    placed_call c(tier.shape, 4, 3);
    moetier_ticket ticket = 0;
    for (int times = 0; times < 2; ++times) {
      expect_refused(moetier_submit(session, &c.call, nullptr, &ticket), MOETIER_UNSUPPORTED,
                     "device memory without " + what + " is not enabled");
    }
    placed_call on_host(tier.shape, 4, 3, {.device = k_host});
    EXPECT_EQ(moetier_forward(session, &on_host.call, &on_host.result, nullptr), MOETIER_OK);
    EXPECT_EQ(sent(), tier.carrier->workers.size());
    close();
  };
  refused("no-such-driver.so.1", "the CUDA driver (no-such-driver.so.1)");
  refused("libm.so.6", "cuInit in the CUDA driver (libm.so.6)");
  fake_set_devices(0);
  refused(MOETIER_FAKE_DRIVER, "a CUDA device (cuInit: CUDA_ERROR_NO_DEVICE)");
  fake_reset();
  fake_set_devices(1);
  open();
  placed_call c(tier.shape, 4, 3, {.device = 1});
  moetier_ticket ticket = 0;
  expect_refused(
      moetier_submit(session, &c.call, nullptr, &ticket), MOETIER_UNSUPPORTED,
      "device memory without cuda:1 (cuDeviceGet: CUDA_ERROR_INVALID_DEVICE) is not enabled");
}

// --- failures -----------------------------------------------------------------------------------

TEST_F(device_tensors, whose_rows_cannot_be_read_cost_their_call_alone) {
  open();
  placed_call c(tier.shape, 4, 3);
  moetier_ticket ticket = 77;
  const auto fails = [&](const char* function, int nth, int code, const std::string& text) {
    fake_fail(function, nth, code);
    expect_refused(moetier_submit(session, &c.call, stream_of(5), &ticket), MOETIER_DEVICE,
                   "the device failed: " + text);
    EXPECT_EQ(ticket, 0u);
    EXPECT_EQ(sent(), 0u);
    EXPECT_EQ(fake_queued(), 0u) << "a copy may still write into the next call's rows";
    EXPECT_EQ(fake_depth(), 0u);
  };
  fails("cuDevicePrimaryCtxRetain", 1, 2,
        "CUDA_ERROR_OUT_OF_MEMORY in cuDevicePrimaryCtxRetain of cuda:0");
  fails("cuMemHostAlloc", 1, 2, "CUDA_ERROR_OUT_OF_MEMORY in cuMemHostAlloc of 2560 bytes");
  fails("cuCtxPushCurrent", 2, 201, "CUDA_ERROR_INVALID_CONTEXT in cuCtxPushCurrent");
  fails("cuStreamIsCapturing", 1, 1, "CUDA_ERROR_INVALID_VALUE in cuStreamIsCapturing");
  fails("cuMemcpyAsync", 2, 700,
        "CUDA_ERROR_ILLEGAL_ADDRESS in cuMemcpyAsync of ids from the device");
  fails("cuStreamSynchronize", 1, 700, "CUDA_ERROR_ILLEGAL_ADDRESS in cuStreamSynchronize");
  fails("cuStreamSynchronize", 1, 12345, "CUDA error 12345 in cuStreamSynchronize");
  EXPECT_STREQ(moetier_last_error()->reason, "device_lost");
  c.hidden.dl.byte_offset = 16;  // its last row ends outside
  expect_refused(moetier_submit(session, &c.call, stream_of(5), &ticket), MOETIER_DEVICE,
                 "the device failed: CUDA_ERROR_INVALID_VALUE in cuMemcpyAsync of hidden from the "
                 "device");
  c.hidden.dl.byte_offset = 0;
  ASSERT_EQ(moetier_forward(session, &c.call, &c.result, stream_of(5)), MOETIER_OK) << last_text();
  expect_near(c.output.read<float>(), due(c));
  auto report = sized<moetier_step_report>();
  EXPECT_EQ(moetier_step_end(session, nullptr, &report), MOETIER_OK);
  EXPECT_EQ(report.status, 0u);
}

TEST_F(device_tensors, whose_rows_cannot_be_written_fail_their_step_which_can_be_replayed) {
  open();
  placed_call c(tier.shape, 4, 3, {.device = 0, .gap = 2});
  moetier_ticket ticket = 0;
  const auto fails = [&](const char* function, int nth, const std::string& text) {
    ASSERT_EQ(moetier_submit(session, &c.call, stream_of(5), &ticket), MOETIER_OK) << last_text();
    fake_fail(function, nth, 700);
    expect_refused(moetier_collect(session, ticket, &c.result, stream_of(5)), MOETIER_DEVICE, text);
    EXPECT_EQ(fake_queued(), 0u);
    EXPECT_EQ(fake_depth(), 0u);
    expect_refused(moetier_collect(session, ticket, &c.result, stream_of(5)), MOETIER_BAD_STATE,
                   fmt::format("collect is not allowed here: ticket {} has ended", ticket));
    std::size_t count = 0;
    EXPECT_EQ(moetier_status_words(session, &count)[0].status,
              static_cast<std::uint32_t>(MOETIER_DEVICE));
    const std::uint64_t step = moetier_status_words(session, &count)[0].step;
    expect_refused(moetier_submit(session, &c.call, stream_of(5), &ticket), MOETIER_SKIPPED,
                   fmt::format("an earlier call of step {} failed; replay the step", step));
    auto report = sized<moetier_step_report>();
    expect_refused(moetier_step_end(session, nullptr, &report), MOETIER_DEVICE, text);
    EXPECT_EQ(report.status, static_cast<std::uint32_t>(MOETIER_DEVICE));
    auto again = sized<moetier_step_options>();
    again.replay = 1;
    ASSERT_EQ(moetier_step_begin(session, &again, nullptr), MOETIER_OK) << last_text();
    ASSERT_EQ(moetier_forward(session, &c.call, &c.result, stream_of(5)), MOETIER_OK)
        << last_text();
    expect_near(c.output.read<float>(), due(c));
    ASSERT_EQ(moetier_step_end(session, nullptr, &report), MOETIER_OK) << last_text();
    begin();
  };
  fails("cuMemcpy2DAsync", 1,
        "the device failed: CUDA_ERROR_ILLEGAL_ADDRESS in cuMemcpy2DAsync of output to the device");
  fails("cuStreamSynchronize", 1,
        "the device failed: CUDA_ERROR_ILLEGAL_ADDRESS in cuStreamSynchronize");
  // Before the rows are waited for, and behind that.
  fails("cuCtxPushCurrent", 1, "the device failed: CUDA_ERROR_ILLEGAL_ADDRESS in cuCtxPushCurrent");
  fails("cuStreamIsCapturing", 1,
        "the device failed: CUDA_ERROR_ILLEGAL_ADDRESS in cuStreamIsCapturing");
  fails("cuCtxPushCurrent", 2, "the device failed: CUDA_ERROR_ILLEGAL_ADDRESS in cuCtxPushCurrent");
}

TEST_F(device_tensors, of_a_call_that_the_tier_fails_are_not_written) {
  auto options = sized<moetier_session_options>();
  options.call_deadline_ns = 3 * k_millisecond;
  open(options);
  tier.carrier->workers[2].acts = behaviour::silent;
  placed_call c(tier.shape, 16, 3);
  EXPECT_EQ(moetier_forward(session, &c.call, &c.result, nullptr), MOETIER_TIMEOUT);
  EXPECT_EQ(c.output.read<float>(), std::vector<float>(160, -7.0F));
  EXPECT_FALSE(contains(fake_log(), "to cuda"));
}

TEST_F(device_tensors, of_a_result_that_forward_refuses_leave_the_session_usable) {
  open();
  placed_call c(tier.shape, 4, 3);
  placed_call on_host(tier.shape, 4, 3, {.device = k_host});
  expect_refused(moetier_forward(session, &c.call, &on_host.result, nullptr), MOETIER_INVALID,
                 "output is in host memory; allowed: on cuda:0, as hidden");
  begin();
  ASSERT_EQ(moetier_forward(session, &c.call, &c.result, nullptr), MOETIER_OK) << last_text();
  expect_near(c.output.read<float>(), due(c));
}

}  // namespace
}  // namespace moetier::client::toy
