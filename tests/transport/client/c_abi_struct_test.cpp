// Structs of other versions of the header, and what later versions bring.

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "tests/transport/client/c_abi_rig.hpp"

namespace moetier::client::toy {
namespace {

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

}  // namespace
}  // namespace moetier::client::toy
