#include <sys/wait.h>
#include <poll.h>
#include <unistd.h>

#include <cstddef>
#include <fstream>
#include <future>
#include <thread>

#include "tests/transport/client/session_rig.hpp"
#include "tests/transport/client/toy_service.hpp"

namespace moetier::client::toy {
namespace {

class c_abi : public testing::Test {
 protected:
  void SetUp() override {
    const auto options = at_tier();
    ASSERT_TRUE(abi::open_service(&options, &service, world_of(tier)));
  }
  void TearDown() override {
    if (session != nullptr) {
      EXPECT_EQ(moetier_session_close(session), MOETIER_OK);
    }
    EXPECT_EQ(moetier_service_close(service), MOETIER_OK);
  }
  void open(moetier_session_options options = sized<moetier_session_options>()) {
    tier.mode = static_cast<kernels::return_mode>(options.return_mode);
    ASSERT_EQ(moetier_session_open(service, &options, &session), MOETIER_OK) << last_text();
  }
  void begin() {
    ASSERT_EQ(moetier_step_begin(session, nullptr, nullptr), MOETIER_OK) << last_text();
  }

  void expect_refused(moetier_status got, moetier_status due, const std::string& text) {
    EXPECT_EQ(got, due);
    EXPECT_EQ(last_text(), text);
    const moetier_error* e = moetier_last_error();
    ASSERT_NE(e, nullptr);
    EXPECT_EQ(e->status, static_cast<std::uint32_t>(due));
  }

  toy_tier tier;
  moetier_service* service = nullptr;
  moetier_session* session = nullptr;
};

// Tensors of one call, and the call.
struct call_rig {
  inputs in;
  std::vector<float> out;
  tensor hidden, ids, weights, output;
  moetier_call call = sized<moetier_call>();
  moetier_result result = sized<moetier_result>();

  call_rig(const tier_shape& shape, std::uint32_t tokens, unsigned seed)
      : in(shape, tokens, seed),
        out(std::size_t{tokens} * shape.hidden_size),
        hidden(in.hidden, tokens, shape.hidden_size, k_dl_f32),
        ids(in.ids, tokens, shape.top_k, k_dl_i32),
        weights(in.weights, tokens, shape.top_k, k_dl_f32),
        output(out, tokens, shape.hidden_size, k_dl_f32) {
    call.layer = 2;
    call.hidden = &hidden.dl;
    call.ids = &ids.dl;
    call.weights = &weights.dl;
    result.output = &output.dl;
  }
};

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

TEST_F(c_abi, refuses_by_name_what_later_versions_bring) {
  const auto refused = [&](auto change, const std::string& text,
                           moetier_status due = MOETIER_UNSUPPORTED) {
    auto options = sized<moetier_session_options>();
    change(options);
    moetier_session* none = nullptr;
    expect_refused(moetier_session_open(service, &options, &none), due, text);
    EXPECT_EQ(none, nullptr);
  };
  using options = moetier_session_options;
  refused([](options& o) { o.deadline_class = 4; }, "deadline_class is 4; allowed: 0 to 3",
          MOETIER_INVALID);
  refused([](options& o) { o.max_workers = 8; }, "max_workers is not enabled");
  refused([](options& o) { o.dispatch_dtype = 4; }, "dispatch_dtype fp8 is not enabled");
  refused([](options& o) { o.return_dtype = 2; }, "return_dtype bf16 is not enabled");
  refused([](options& o) { o.ack = 1; }, "ack manual is not enabled");
  refused([](options& o) { o.on_missing = 1; }, "on_missing degrade is not enabled");
  refused([](options& o) { o.max_missing_weight = 0.5; }, "max_missing_weight is not enabled");
  refused([](options& o) { o.low_latency = 1; }, "low_latency is not enabled");
  refused([](options& o) { o.dry_run = 1; }, "dry_run is not enabled");
  const std::uint16_t one = 1;
  refused([&](options& o) { o.repeat_counts = &one; }, "repeat_counts is not enabled");
  refused([](options& o) { o.return_mode = 2; }, "return_mode is 2; allowed: 0 to 1",
          MOETIER_INVALID);
  refused([](options& o) { o.gate = 9; }, "gate is 9; allowed: 0 to 1", MOETIER_INVALID);
  EXPECT_TRUE(tier.wishes.empty());

  open();
  int stream = 0;
  expect_refused(moetier_step_begin(session, nullptr, &stream), MOETIER_UNSUPPORTED,
                 "a stream is not enabled");
  auto step = sized<moetier_step_options>();
  step.warmup = 1;
  expect_refused(moetier_step_begin(session, &step, nullptr), MOETIER_UNSUPPORTED,
                 "warmup is not enabled");
  begin();
  call_rig r(tier.shape, 4, 3);
  r.call.token_count = &r.hidden.dl;
  expect_refused(moetier_forward(session, &r.call, &r.result, nullptr), MOETIER_UNSUPPORTED,
                 "token_count is not enabled");
  r.call.token_count = nullptr;
  r.result.accumulate = 1;
  moetier_ticket ticket = 0;
  ASSERT_EQ(moetier_submit(session, &r.call, nullptr, &ticket), MOETIER_OK);
  expect_refused(moetier_collect(session, ticket, &r.result, nullptr), MOETIER_UNSUPPORTED,
                 "accumulate is not enabled");
  expect_refused(moetier_ack_generation(session, 3), MOETIER_INVALID,
                 "generation is 3; allowed: 1");
  EXPECT_EQ(moetier_ack_generation(session, 1), MOETIER_OK);
  EXPECT_EQ(moetier_ack_generation(session, 1), MOETIER_OK);
}

TEST_F(c_abi, takes_older_structs_and_ignores_no_wish_of_newer_ones) {
  struct newer {
    moetier_session_options known;
    std::uint64_t wish;
  };
  newer options{sized<moetier_session_options>(), 0};
  options.known.size = sizeof(newer);
  options.wish = 5;
  moetier_session* none = nullptr;
  expect_refused(moetier_session_open(service, &options.known, &none), MOETIER_VERSION_MISMATCH,
                 fmt::format("session options asks for something beyond its first {} bytes, which "
                             "this library does not know",
                             sizeof(moetier_session_options)));
  options.known.version = 2;
  expect_refused(moetier_session_open(service, &options.known, &none), MOETIER_VERSION_MISMATCH,
                 "protocol version 2 of session options is not supported; supported: 1");
  options.known.version = 1;
  options.known.size = 4;
  expect_refused(moetier_session_open(service, &options.known, &none), MOETIER_INVALID,
                 "the size of session options is 4; allowed: sizeof the struct");
  options.known.size = sizeof(newer);
  options.wish = 0;
  ASSERT_EQ(moetier_session_open(service, &options.known, &session), MOETIER_OK);

  auto info = sized<moetier_model_info>();
  info.size = offsetof(moetier_model_info, layers_total);
  info.layers_total = 4711;
  ASSERT_EQ(moetier_service_info(service, &info), MOETIER_OK);
  EXPECT_EQ(info.top_k, 3u);
  EXPECT_EQ(info.layers_total, 4711u);  // beyond what the caller has
}

// One entry of a struct's own list: where it begins and ends.
struct extent {
  std::size_t begin;
  std::size_t end;
};
#define EXTENT(type, field) \
  extent { offsetof(type, field), offsetof(type, field) + sizeof(type::field) }

// Hands `call` a struct of every size up to its own; those that cut no field pass the size check.
template <class T>
void expect_cuts(const std::vector<extent>& fields, const std::function<moetier_status(T*)>& call) {
  for (std::uint32_t size = 8; size <= sizeof(T); ++size) {
    // As many bytes as are told and not one more, so that a sanitizer sees a read beyond.
    const auto bytes = std::make_unique<std::byte[]>(size);
    const std::uint32_t head[2] = {size, MOETIER_VERSION};
    std::memset(bytes.get(), 0, size);
    std::memcpy(bytes.get(), head, sizeof head);
    const bool whole = size == sizeof(T) || std::ranges::any_of(fields, [&](extent f) {
                         return f.begin == size || f.end == size;
                       });
    const moetier_status got = call(reinterpret_cast<T*>(bytes.get()));
    EXPECT_EQ(got != MOETIER_VERSION_MISMATCH, whole) << size << ": " << last_text();
  }
}

TEST_F(c_abi, takes_no_struct_whose_size_cuts_a_field) {
  open();
  const moetier_service_options half{.size = 12,
                                     .version = MOETIER_VERSION,
                                     .address = "tier:1",
                                     .tenant = nullptr,
                                     .tls = nullptr,
                                     .connect_timeout_ns = 0,
                                     .model_fingerprint = 0,
                                     .flight_file = nullptr};
  moetier_service* none = nullptr;
  const auto refused = abi::open_service(&half, &none, world_of(tier));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, status::version);
  EXPECT_EQ(refused.error().text,
            "protocol version 1 of service options in 12 bytes is not supported; supported: sizes "
            "that end where a field ends");

  using service_options = moetier_service_options;
  expect_cuts<service_options>(
      {EXTENT(service_options, version), EXTENT(service_options, address),
       EXTENT(service_options, tenant), EXTENT(service_options, tls),
       EXTENT(service_options, connect_timeout_ns), EXTENT(service_options, model_fingerprint)},
      [&](service_options* o) {
        return abi::guarded([&] { return abi::open_service(o, &none, world_of(tier)); });
      });
  using model = moetier_model_info;
  expect_cuts<model>({EXTENT(model, hidden_size),    EXTENT(model, intermediate_size),
                      EXTENT(model, experts),        EXTENT(model, top_k),
                      EXTENT(model, layers_total),   EXTENT(model, moe_layer_count),
                      EXTENT(model, moe_layers),     EXTENT(model, fingerprint),
                      EXTENT(model, epoch),          EXTENT(model, generation),
                      EXTENT(model, workers),        EXTENT(model, workers_live),
                      EXTENT(model, exact_allowed),  EXTENT(model, routing_method),
                      EXTENT(model, model_type),     EXTENT(model, carrier),
                      EXTENT(model, backend),        EXTENT(model, router_columns),
                      EXTENT(model, shared_experts), EXTENT(model, adapters)},
                     [&](model* m) { return moetier_service_info(service, m); });
  using options = moetier_session_options;
  expect_cuts<options>({EXTENT(options, deadline_class),
                        EXTENT(options, max_tokens),
                        EXTENT(options, micro_batches),
                        EXTENT(options, top_k),
                        EXTENT(options, return_mode),
                        EXTENT(options, max_rows_per_chunk),
                        EXTENT(options, call_deadline_ns),
                        EXTENT(options, step_deadline_ns),
                        EXTENT(options, open_timeout_ns),
                        EXTENT(options, max_workers),
                        EXTENT(options, dispatch_dtype),
                        EXTENT(options, return_dtype),
                        EXTENT(options, gate),
                        EXTENT(options, shared_experts),
                        EXTENT(options, ack),
                        EXTENT(options, bad_rows),
                        EXTENT(options, on_missing),
                        EXTENT(options, max_missing_weight),
                        EXTENT(options, low_latency),
                        EXTENT(options, dry_run),
                        EXTENT(options, repeat_counts)},
                       [&](options* o) {
                         moetier_session* other = nullptr;
                         const moetier_status opened = moetier_session_open(service, o, &other);
                         if (other != nullptr) moetier_session_close(other);
                         return opened;
                       });
  using step = moetier_step_options;
  expect_cuts<step>(
      {EXTENT(step, replay), EXTENT(step, warmup), EXTENT(step, deadline_ns), EXTENT(step, counts),
       EXTENT(step, counts_length), EXTENT(step, use_dp_padding)},
      [&](step* o) { return moetier_step_begin(session, o, nullptr); });
  using end = moetier_end_options;
  expect_cuts<end>({EXTENT(end, version), EXTENT(end, wait)},
                   [&](end* o) { return moetier_step_end(session, o, nullptr); });
  using report = moetier_step_report;
  expect_cuts<report>({EXTENT(report, status), EXTENT(report, attempts), EXTENT(report, step),
                       EXTENT(report, generation), EXTENT(report, calls), EXTENT(report, replays),
                       EXTENT(report, tokens)},
                      [&](report* r) { return moetier_step_end(session, nullptr, r); });
  using call = moetier_call;
  moetier_ticket ticket = 0;
  expect_cuts<call>(
      {EXTENT(call, layer), EXTENT(call, micro_batch), EXTENT(call, repeat_idx),
       EXTENT(call, repeat_count), EXTENT(call, hidden), EXTENT(call, logits), EXTENT(call, ids),
       EXTENT(call, weights), EXTENT(call, deadline_ns), EXTENT(call, token_ids),
       EXTENT(call, adapter_ids), EXTENT(call, token_count), EXTENT(call, hidden_ready)},
      [&](call* c) { return moetier_submit(session, c, nullptr, &ticket); });
  using result = moetier_result;
  expect_cuts<result>(
      {EXTENT(result, output), EXTENT(result, ids), EXTENT(result, weights),
       EXTENT(result, accumulate), EXTENT(result, missing_weight), EXTENT(result, bad_rows)},
      [&](result* r) { return moetier_collect(session, 5, r, nullptr); });
  using event = moetier_event;
  expect_cuts<event>({EXTENT(event, kind), EXTENT(event, workers_live), EXTENT(event, epoch),
                      EXTENT(event, generation)},
                     [&](event* e) { return moetier_next_event(session, e, 0); });
  using stats = moetier_stats_snapshot;
  expect_cuts<stats>(
      {EXTENT(stats, steps), EXTENT(stats, calls), EXTENT(stats, tokens), EXTENT(stats, failures),
       EXTENT(stats, replays), EXTENT(stats, epoch), EXTENT(stats, generation),
       EXTENT(stats, workers), EXTENT(stats, workers_live), EXTENT(stats, route_ns),
       EXTENT(stats, pack_ns), EXTENT(stats, wait_ns), EXTENT(stats, sum_ns),
       EXTENT(stats, total_ns), EXTENT(stats, late_returns), EXTENT(stats, max_tokens),
       EXTENT(stats, micro_batches), EXTENT(stats, air_ns), EXTENT(stats, held_ns)},
      [&](stats* s) { return moetier_stats(session, s); });
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

bool sleeps(pid_t thread) {
  std::ifstream stat(fmt::format("/proc/self/task/{}/stat", thread));
  std::string text;
  std::getline(stat, text);
  const auto name_end = text.rfind(')');
  return name_end != std::string::npos && text.compare(name_end, 3, ") S") == 0;
}

TEST_F(c_abi, closing_a_session_ends_the_waits_for_its_events) {
  for (int round = 0; round < 20; ++round) {
    ASSERT_EQ(moetier_session_open(service, nullptr, &session), MOETIER_OK);
    std::array<std::future<std::pair<moetier_status, std::string>>, 3> waits;
    std::array<std::atomic<pid_t>, 3> threads{};
    for (std::size_t i = 0; i < waits.size(); ++i) {
      waits[i] = std::async(std::launch::async, [&thread = threads[i], waited = session] {
        auto event = sized<moetier_event>();
        thread = ::gettid();
        const moetier_status how = moetier_next_event(waited, &event, 3600 * k_second);
        return std::pair(how, last_text());
      });
    }
    // A wait must be under way when its session is closed. Once all sleep, none is on its way
    // there.
    while (!std::ranges::all_of(threads, [](const auto& t) { return t != 0 && sleeps(t); })) {
      std::this_thread::yield();
    }
    const auto id = tier.attached.back();
    EXPECT_EQ(moetier_session_close(std::exchange(session, nullptr)), MOETIER_OK);
    for (auto& wait : waits) {
      EXPECT_EQ(wait.get(), std::pair(MOETIER_CANCELLED, fmt::format("session {} is closed", id)));
    }
  }
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

TEST_F(c_abi, ends_calls_by_the_steps_deadline) {
  open();
  auto step = sized<moetier_step_options>();
  step.deadline_ns = 1;
  ASSERT_EQ(moetier_step_begin(session, &step, nullptr), MOETIER_OK);
  call_rig r(tier.shape, 4, 3);
  expect_refused(moetier_forward(session, &r.call, &r.result, nullptr), MOETIER_TIMEOUT,
                 "step 1 did not end within 0 ms");
}

TEST_F(c_abi, tells_events_in_order) {
  open();
  auto event = sized<moetier_event>();
  EXPECT_EQ(moetier_next_event(session, &event, 0), MOETIER_PENDING);
  pollfd waiting{.fd = moetier_event_fd(session), .events = POLLIN, .revents = 0};
  EXPECT_EQ(::poll(&waiting, 1, 0), 0);
  tier.sink(link_event::coordinator_lost, session_id{});
  tier.publish(make_snapshot(tier.shape, 1, 2, {true, false, true}));
  tier.sink(link_event::snapshot, session_id{});
  tier.publish(make_snapshot(tier.shape, 2));
  tier.sink(link_event::snapshot, session_id{});
  EXPECT_EQ(::poll(&waiting, 1, 0), 1);
  begin();
  const auto next = [&] {
    EXPECT_EQ(moetier_next_event(session, &event, 0), MOETIER_OK);
    return event.kind;
  };
  EXPECT_EQ(next(), static_cast<std::uint32_t>(MOETIER_EVENT_COORDINATOR_LOST));
  EXPECT_EQ(next(), static_cast<std::uint32_t>(MOETIER_EVENT_MEMBERSHIP));
  EXPECT_EQ(event.workers_live, 2u);
  EXPECT_EQ(next(), static_cast<std::uint32_t>(MOETIER_EVENT_GENERATION_READY));
  EXPECT_EQ(event.generation, 2u);
  EXPECT_EQ(next(), static_cast<std::uint32_t>(MOETIER_EVENT_GENERATION_MOVED));
  EXPECT_EQ(moetier_next_event(session, &event, 0), MOETIER_PENDING);
  EXPECT_EQ(::poll(&waiting, 1, 0), 0);
}

TEST_F(c_abi, says_so_when_events_were_dropped) {
  open();
  for (int i = 0; i < 1030; ++i) tier.sink(link_event::coordinator_lost, session_id{});
  auto event = sized<moetier_event>();
  for (int i = 0; i < 1024; ++i) {
    ASSERT_EQ(moetier_next_event(session, &event, 0), MOETIER_OK);
    EXPECT_EQ(event.kind, static_cast<std::uint32_t>(MOETIER_EVENT_COORDINATOR_LOST));
  }
  EXPECT_EQ(moetier_next_event(session, &event, 0), MOETIER_PENDING);
  tier.sink(link_event::coordinator_back, session_id{});
  ASSERT_EQ(moetier_next_event(session, &event, 0), MOETIER_OK);
  EXPECT_EQ(event.kind, static_cast<std::uint32_t>(MOETIER_EVENT_OVERFLOW));
  ASSERT_EQ(moetier_next_event(session, &event, 0), MOETIER_OK);
  EXPECT_EQ(event.kind, static_cast<std::uint32_t>(MOETIER_EVENT_COORDINATOR_BACK));
}

TEST_F(c_abi, a_lost_lease_ends_the_session_and_no_other) {
  open();
  moetier_session* other = nullptr;
  ASSERT_EQ(moetier_session_open(service, nullptr, &other), MOETIER_OK);
  tier.sink(link_event::session_lost, session_id(1));
  expect_refused(moetier_step_begin(session, nullptr, nullptr), MOETIER_SESSION_LOST,
                 "the lease of session 1 has lapsed");
  EXPECT_EQ(moetier_step_begin(other, nullptr, nullptr), MOETIER_OK);
  EXPECT_EQ(moetier_session_close(other), MOETIER_OK);
  EXPECT_EQ(tier.closed, (std::vector<std::uint32_t>{2}));
}

TEST_F(c_abi, gives_the_lease_back_when_a_session_cannot_be_opened) {
  tier.refuse_attach = make_error(reason::worker_lost, 2, 0);
  moetier_session* none = nullptr;
  EXPECT_EQ(moetier_session_open(service, nullptr, &none), MOETIER_TIMEOUT);
  EXPECT_EQ(tier.closed, (std::vector<std::uint32_t>{1}));
}

TEST_F(c_abi, a_forked_child_may_use_no_handle) {
  open();
  begin();
  const pid_t child = ::fork();
  if (child == 0) {
    const bool refused = moetier_step_begin(session, nullptr, nullptr) == MOETIER_BAD_STATE &&
                         moetier_session_close(session) == MOETIER_BAD_STATE &&
                         moetier_service_close(service) == MOETIER_BAD_STATE;
    ::_exit(refused ? 0 : 1);
  }
  int how = -1;
  ASSERT_EQ(::waitpid(child, &how, 0), child);
  EXPECT_EQ(how, 0);
  EXPECT_EQ(moetier_step_end(session, nullptr, nullptr), MOETIER_OK);
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
