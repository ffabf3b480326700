// Thin sessions end to end: link, RPC server, gateway, in-process carrier, toy workers.

#include <future>

#include <gtest/gtest.h>

#include "tests/coordinator/fake_tier.hpp"
#include "tests/coordinator/no_threads.hpp"
#include "tests/coordinator/raw_client.hpp"
#include "tests/coordinator/toy_tier.hpp"
#include "transport/client/link/tier_link.hpp"

namespace moetier::coordinator {
namespace {

using client::toy::inputs;

constexpr duration_ns k_patience = 10 * k_second;

client::thin_call call_of(const inputs& in) {
  return {.layer = layer_id(2),
          .tokens = in.tokens,
          .hidden = std::as_bytes(std::span(in.hidden)),
          .logits = {},
          .ids = in.ids,
          .weights = in.weights,
          .deadline = k_patience};
}

class rpc_thin : public testing::Test {
 protected:
  rpc_thin() {
    control.on_attach = [this](const attach_session& a, const fake_tier::held&) {
      return tier.attach(
          {source_id(static_cast<std::uint16_t>(a.session.value)), a.session, a.incarnation},
          a.shape, a.address);
    };
    link = std::move(*client::connect(server.address(), k_patience));
  }
  session_id open() {
    const auto granted = link->open_session({.return_mode = 1, .thin = true}, k_patience);
    EXPECT_TRUE(granted) << granted.error().text;
    return granted ? granted->session : session_id{};
  }
  std::string refusal(session_id session, const client::thin_call& call, status code) {
    const auto out = link->forward(session, call);
    EXPECT_FALSE(out);
    if (out) return "";
    EXPECT_EQ(out.error().code, code) << out.error().text;
    return out.error().text;
  }

  toy_tier tier;
  gateway thin{*tier.carrier, {}};
  fake_tier control{tier.snapshot};
  served server{control, &thin};
  std::unique_ptr<client::tier_link> link;
};

TEST_F(rpc_thin, forwards_exactly_what_the_experts_compute) {
  const session_id session = open();
  for (unsigned seed = 0; seed < 5; ++seed) {
    const inputs in(tier.shape, 16, seed);
    const auto out = link->forward(session, call_of(in));
    ASSERT_TRUE(out) << out.error().text;
    EXPECT_EQ(out->output, in.exact(tier.shape));
    EXPECT_EQ(out->ids, in.ids);
    EXPECT_EQ(out->generation, generation_number(1));
  }
  const auto none = link->forward(session, call_of(inputs(tier.shape, 0, 1)));
  ASSERT_TRUE(none) << none.error().text;
  EXPECT_TRUE(none->output.empty());
}

TEST_F(rpc_thin, routes_logits_of_every_row_dtype) {
  const session_id session = open();
  const inputs in(tier.shape, 2, 3);
  const std::vector<std::uint16_t> logits = {
      0,      0x3f80, 0, 0x4000, 0,      0x4040, 0,      0,  // bf16
      0x4080, 0,      0, 0,      0x3f80, 0,      0x4000, 0};
  auto call = call_of(in);
  call.ids = {};
  call.weights = {};
  call.logits = std::as_bytes(std::span(logits));
  call.logits_type = dtype::bf16;
  const auto out = link->forward(session, call);
  ASSERT_TRUE(out) << out.error().text;
  EXPECT_EQ(out->ids, (std::vector<std::int32_t>{5, 3, 1, 0, 6, 4}));
}

TEST_F(rpc_thin, bad_input_is_refused_with_its_numbers) {
  const session_id session = open();
  const inputs in(tier.shape, 2, 1);
  const auto good = call_of(in);

  auto call = good;
  call.tokens = 17;
  EXPECT_EQ(refusal(session, call, status::invalid), "17 tokens exceed the session's limit of 16");
  call.tokens = 0xffffffff;
  EXPECT_EQ(refusal(session, call, status::invalid),
            "4294967295 tokens exceed the session's limit of 16");
  call = good;
  call.tokens = 3;
  EXPECT_EQ(refusal(session, call, status::invalid),
            "hidden has shape 80 bytes; expected 3 x 10 x f32 = 120 bytes");
  call = good;
  call.hidden_type = dtype::i64;
  EXPECT_EQ(refusal(session, call, status::invalid),
            "hidden has dtype i64; allowed: f32, f16, bf16");
  call.hidden_type = static_cast<dtype>(200);
  EXPECT_EQ(refusal(session, call, status::invalid),
            "hidden has dtype number 200; allowed: f32, f16, bf16");
  call = good;
  call.ids = call.ids.first(5);
  EXPECT_EQ(refusal(session, call, status::invalid),
            "ids has shape 5 entries; expected 2 x 3 = 6 entries");
  call = good;
  call.weights = {};
  EXPECT_EQ(refusal(session, call, status::invalid),
            "weights has shape 0 entries; expected 2 x 3 = 6 entries");
  call = good;
  call.logits = call.hidden;
  EXPECT_EQ(refusal(session, call, status::invalid),
            "the router input is both logits and ids; allowed: logits, or ids with weights");
  call = good;
  call.ids = {};
  call.weights = {};
  call.logits = call.hidden.first(12);
  EXPECT_EQ(refusal(session, call, status::invalid),
            "logits has shape 12 bytes; expected 2 x 8 x f32 = 64 bytes");
  call = good;
  call.layer = layer_id(1);
  EXPECT_EQ(refusal(session, call, status::invalid),
            "layer 1 is not served; MoE layers: 0, 2 to 3");
  auto ids = in.ids;
  ids[4] = -2;
  call = good;
  call.ids = ids;
  EXPECT_EQ(refusal(session, call, status::invalid),
            "row 1 position 1 names expert -2; allowed: -1 (none) or 0 to 7");
  const std::vector<std::byte> huge(k_rpc_message_bytes_max);
  call = good;
  call.hidden = huge;
  EXPECT_EQ(refusal(session, call, status::invalid).rfind("bytes of one forward is ", 0), 0u);
  EXPECT_EQ(refusal(session_id(999), good, status::session_lost), "session 999 is not known");

  // Nothing of it hurt the session.
  EXPECT_TRUE(link->forward(session, good));
  EXPECT_TRUE(link->close_session(session, k_patience));
  EXPECT_EQ(refusal(session, good, status::cancelled),
            fmt::format("session {} is closed", session.value));
}

TEST_F(rpc_thin, a_direct_session_forwards_nothing_and_a_thin_one_attaches_nothing) {
  const auto direct = link->open_session({.incarnation = incarnation_id(7)}, k_patience);
  ASSERT_TRUE(direct);
  EXPECT_EQ(refusal(direct->session, call_of(inputs(tier.shape, 1, 1)), status::bad_state),
            "forward is not allowed here: the session has a source half of its own");
  const auto attached = link->attach(open(), {}, {std::byte{1}}, k_patience);
  ASSERT_FALSE(attached);
  EXPECT_EQ(attached.error().text,
            "attach is not allowed here: the gateway is this session's source");
}

TEST_F(rpc_thin, a_repeated_request_gets_the_same_answer_without_new_work) {
  raw_client raw(server.port);
  auto open = raw.tier().openSessionRequest();
  open.initWish().setThin(true);
  open.getWish().setReturnMode(1);
  auto opened = raw.send(open);
  ASSERT_EQ(raw.refusal(opened), "");
  const inputs in(tier.shape, 2, 1);
  const auto exchanges = [this] {
    std::uint64_t sum = 0;
    for (const auto& w : tier.workers) sum += w->exchanges();
    return sum;
  };
  const auto forward = [&](std::uint64_t id) {
    auto request = opened.getSession().forwardRequest();
    client::write_rows(request.initRows(), call_of(in));
    return raw.send(request, id);
  };
  const auto first = forward(5);
  ASSERT_EQ(raw.refusal(first), "");
  const std::uint64_t worked = exchanges();
  const auto again = forward(5);
  ASSERT_EQ(raw.refusal(again), "");
  EXPECT_EQ(exchanges(), worked);
  EXPECT_EQ(first.getSums().getOutput(), again.getSums().getOutput());
  ASSERT_EQ(raw.refusal(forward(6)), "");
  EXPECT_GT(exchanges(), worked);
}

// Each that waits gets a copy of the answer when it comes.
TEST_F(rpc_thin, of_the_repeats_of_a_call_that_is_served_two_wait) {
  raw_client raw(server.port);
  auto open = raw.tier().openSessionRequest();
  open.initWish().setThin(true);
  open.getWish().setReturnMode(1);
  auto opened = raw.send(open);
  ASSERT_EQ(raw.refusal(opened), "");
  inputs in(tier.shape, 1, 1);
  in.ids = {0, -1, -1};
  const auto send = [&] {
    auto request = opened.getSession().forwardRequest();
    client::write_call(request.initCall(), 77, 5, k_patience);
    client::write_rows(request.initRows(), call_of(in));
    return request.send();
  };
  tier.workers[0]->freeze(true);
  std::vector<capnp::RemotePromise<rpc::Session::ForwardResults>> waiting;
  for (int i = 0; i < 3; ++i) waiting.push_back(send());
  const auto one_more = send().wait(raw.loop.scope());
  EXPECT_EQ(raw.refusal(one_more), "no credit: 2 repeats of this call wait already");
  EXPECT_EQ(one_more.getStatus().getRetryAfterNs(), 10 * k_millisecond);
  tier.workers[0]->freeze(false);
  const auto later = [&] { return send().wait(raw.loop.scope()); };
  for (auto& call : waiting) {
    const auto answer = call.wait(raw.loop.scope());
    ASSERT_EQ(raw.refusal(answer), "");
    EXPECT_EQ(answer.getSums().getOutput(), later().getSums().getOutput());
  }
}

TEST_F(rpc_thin, a_forward_ends_by_its_deadline_and_others_are_served_meanwhile) {
  const session_id stuck = open();
  const session_id free = open();
  inputs blocked(tier.shape, 1, 1);
  blocked.ids = {0, -1, -1};
  inputs open_way(tier.shape, 1, 2);
  open_way.ids = {4, 5, -1};
  tier.workers[0]->freeze(true);
  auto call = call_of(blocked);
  call.deadline = 200 * k_millisecond;
  auto late = std::async(std::launch::async, [&] { return link->forward(stuck, call); });
  int served = 0;
  while (late.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
    const auto out = link->forward(free, call_of(open_way));
    ASSERT_TRUE(out) << out.error().text;
    ++served;
  }
  const auto out = late.get();
  ASSERT_FALSE(out);
  EXPECT_EQ(out.error().why, reason::worker_late) << out.error().text;
  EXPECT_EQ(out.error().code, status::timeout);
  EXPECT_GT(served, 0);
  tier.workers[0]->freeze(false);
}

TEST_F(rpc_thin, a_session_whose_thread_cannot_start_is_told_when_to_come_again) {
  expected<client::session_granted> refused;
  {
    const no_threads none;
    refused = link->open_session({.return_mode = 1, .thin = true}, k_patience);
  }
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, status::overloaded) << refused.error().text;
  EXPECT_EQ(refused.error().retry_after_ns, 100 * k_millisecond);
  EXPECT_TRUE(control.wait([](const auto& s) { return s.empty(); })) << "its grant is given back";
  EXPECT_TRUE(link->forward(open(), call_of(inputs(tier.shape, 2, 1))));
}

TEST_F(rpc_thin, a_thin_session_whose_client_dies_is_closed_at_once) {
  control.lease = 3600 * k_second;  // nothing lapses here
  const session_id session = open();
  EXPECT_EQ(control.sessions().count(session), 1u);
  EXPECT_EQ(thin.sessions(), 1u);
  link.reset();  // with a long poll outstanding
  EXPECT_TRUE(control.wait([](const auto& s) { return s.empty(); }));
  EXPECT_EQ(thin.sessions(), 0u);
}

TEST_F(rpc_thin, a_direct_session_whose_client_dies_keeps_its_lease) {
  raw_client honest(server.port);
  const auto direct = link->open_session({.incarnation = incarnation_id(7)}, k_patience);
  ASSERT_TRUE(direct);
  link.reset();
  // Another client can claim it, if it knows its secret.
  auto request = honest.tier().resumeSessionRequest();
  request.setSession(direct->session.value);
  request.setIncarnation(7);
  EXPECT_EQ(honest.refusal(honest.send(request)), "");
}

TEST_F(rpc_thin, forwards_go_on_under_the_same_session_after_the_server_was_killed) {
  const session_id session = open();
  const inputs in(tier.shape, 4, 1);
  for (int round = 0; round < 3; ++round) {
    server.stop();
    auto waiting =
        std::async(std::launch::async, [&] { return link->forward(session, call_of(in)); });
    const time_ns up = monotonic_now();
    server.start();
    const auto out = waiting.get();
    ASSERT_TRUE(out) << out.error().text;
    std::printf("server up to forward served: %d ms\n",
                static_cast<int>((monotonic_now() - up) / k_millisecond));
    EXPECT_EQ(out->output, in.exact(tier.shape));
  }
  EXPECT_FALSE(link->session_lost(session));
  EXPECT_TRUE(link->close_session(session, k_patience));
}

TEST_F(rpc_thin, a_drained_server_ends_what_is_in_service_and_admits_nothing) {
  const session_id session = open();
  raw_client raw(server.port);
  auto wish = raw.tier().openSessionRequest();
  wish.initWish().setThin(true);
  auto opened = raw.send(wish);
  ASSERT_EQ(raw.refusal(opened), "");
  inputs in(tier.shape, 1, 1);
  in.ids = {0, -1, -1};
  tier.workers[0]->freeze(true);
  auto request = opened.getSession().forwardRequest();
  client::write_call(request.initCall(), 77, 1, k_patience);
  client::write_rows(request.initRows(), call_of(in));
  auto in_service = request.send();
  raw.send(raw.tier().pingRequest());  // answered, so what was sent before is in service

  EXPECT_FALSE(server.server->drain(20 * k_millisecond));
  EXPECT_EQ(raw.refusal(raw.send(raw.tier().openSessionRequest())),
            "the coordinator is shutting down");
  // One that comes now rides the restart out.
  auto later = std::async(std::launch::async, [&] { return link->forward(session, call_of(in)); });
  tier.workers[0]->freeze(false);
  EXPECT_EQ(raw.refusal(in_service.wait(raw.loop.scope())), "");
  EXPECT_TRUE(server.server->drain(k_patience));
  server.stop();
  server.start();
  const auto out = later.get();
  ASSERT_TRUE(out) << out.error().text;
  EXPECT_EQ(out->output, in.exact(tier.shape));
}

TEST_F(rpc_thin, a_lost_workers_rows_are_served_by_its_replica_once_the_snapshot_says_so) {
  tier.place(2, {true, false, true});  // expert 2 lies on workers 1 and 2
  control.publish(tier.snapshot);
  const session_id session = open();
  tier.workers[0]->freeze(true);
  inputs in(tier.shape, 1, 1);
  in.ids = {2, -1, -1};
  auto call = std::async(std::launch::async, [&] { return link->forward(session, call_of(in)); });
  ASSERT_EQ(call.wait_for(std::chrono::milliseconds(30)), std::future_status::timeout);
  tier.place(3, {false, true, true});
  control.publish(tier.snapshot);
  const auto out = call.get();
  ASSERT_TRUE(out) << out.error().text;
  EXPECT_EQ(out->output, in.exact(tier.shape));
  EXPECT_EQ(out->ids, in.ids);
}

TEST_F(rpc_thin, a_failed_attach_gives_the_session_back) {
  control.on_attach = [](const attach_session&, const fake_tier::held&) -> expected<void> {
    return fail(reason::worker_lost, 1, 0);
  };
  const auto granted = link->open_session({.thin = true}, k_patience);
  ASSERT_FALSE(granted);
  EXPECT_EQ(granted.error().why, reason::worker_lost);
  EXPECT_TRUE(control.wait([](const auto& s) { return s.empty(); }));
  EXPECT_EQ(thin.sessions(), 0u);
}

}  // namespace
}  // namespace moetier::coordinator
