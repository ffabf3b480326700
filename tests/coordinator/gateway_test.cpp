// The gateway over the in-process carrier with toy workers: right rows, typed refusals, and
// nobody's session blocks another.

#include <future>
#include <new>

#include <gtest/gtest.h>

#include "coordinator/gateway/gateway.hpp"
#include "tests/coordinator/no_threads.hpp"
#include "tests/coordinator/toy_tier.hpp"

namespace moetier::coordinator {
namespace {

using client::toy::inputs;
using forward_result = expected<client::thin_result>;

client::thin_rows rows_of(const inputs& in) {
  client::thin_rows rows;
  rows.layer = layer_id(2);
  rows.tokens = in.tokens;
  const auto bytes = std::as_bytes(std::span(in.hidden));
  rows.hidden.assign(bytes.begin(), bytes.end());
  rows.ids = in.ids;
  rows.weights = in.weights;
  return rows;
}

// Has no memory for one more source half.
class poor_carrier final : public transport::Communication {
 public:
  explicit poor_carrier(transport::Communication& carrier) : carrier_(carrier) {}
  std::string_view name() const noexcept override { return carrier_.name(); }
  transport::comm_capabilities capabilities() const noexcept override {
    return carrier_.capabilities();
  }
  expected<std::unique_ptr<transport::SourceHalf>> make_source(
      const transport::source_options&) override {
    throw std::bad_alloc();
  }
  expected<std::unique_ptr<transport::WorkerHalf>> make_worker(
      const transport::worker_options& options) override {
    return carrier_.make_worker(options);
  }
  std::string describe() const override { return carrier_.describe(); }

 private:
  transport::Communication& carrier_;
};

class gateway_test : public testing::Test {
 protected:
  static constexpr duration_ns k_patience = 10 * k_second;

  thin_session_options wish(std::uint32_t id) const {
    return {.session = session_id(id),
            .source = source_id(static_cast<std::uint16_t>(id)),
            .incarnation = incarnation_id(500 + id),
            .tokens_max = 16,
            .top_k = tier.shape.top_k,
            .return_mode = 1};
  }

  expected<void> open(std::uint32_t id) {
    std::promise<expected<thin_place>> opened;
    thin.open(wish(id), tier.snapshot,
              [&](expected<thin_place> place) { opened.set_value(std::move(place)); });
    auto place = opened.get_future().get();
    if (!place) return unexpected_error(place.error());
    return tier.attach({wish(id).source, session_id(id), wish(id).incarnation}, place->shape,
                       place->address);
  }

  std::future<forward_result> start(std::uint32_t id, client::thin_rows rows, duration_ns limit) {
    auto done = std::make_shared<std::promise<forward_result>>();
    auto result = done->get_future();
    thin.forward(session_id(id), std::move(rows), limit,
                 [done](forward_result r) { done->set_value(std::move(r)); });
    return result;
  }
  forward_result forward(std::uint32_t id, const inputs& in, duration_ns limit = k_patience) {
    return start(id, rows_of(in), limit).get();
  }

  toy_tier tier;
  gateway thin{*tier.carrier, {.sessions_max = 3}};
};

TEST_F(gateway_test, forwards_exactly_what_the_experts_compute) {
  ASSERT_TRUE(open(1));
  for (unsigned seed = 0; seed < 5; ++seed) {
    const inputs in(tier.shape, 7, seed);
    const auto out = forward(1, in);
    ASSERT_TRUE(out) << out.error().text;
    EXPECT_EQ(out->output, in.exact(tier.shape));
    EXPECT_EQ(out->ids, in.ids);
    EXPECT_EQ(out->generation, generation_number(1));
    EXPECT_EQ(out->epoch, epoch_number(1));
  }
}

TEST_F(gateway_test, no_tokens_are_a_legal_call) {
  ASSERT_TRUE(open(1));
  const auto out = forward(1, inputs(tier.shape, 0, 1));
  ASSERT_TRUE(out) << out.error().text;
  EXPECT_TRUE(out->output.empty());
}

TEST_F(gateway_test, a_bad_call_is_refused_and_the_next_one_is_served) {
  ASSERT_TRUE(open(1));
  const inputs in(tier.shape, 2, 1);
  auto rows = rows_of(in);
  rows.layer = layer_id(1);
  const auto unknown = start(1, rows, k_patience).get();
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().why, reason::unknown_layer);
  rows = rows_of(in);
  rows.ids[1] = 8;
  const auto expert = start(1, rows, k_patience).get();
  ASSERT_FALSE(expert);
  EXPECT_EQ(expert.error().text, "row 0 position 1 names expert 8; allowed: -1 (none) or 0 to 7");
  EXPECT_TRUE(forward(1, in));
}

TEST_F(gateway_test, a_frozen_worker_stalls_only_the_calls_that_need_it) {
  ASSERT_TRUE(open(1));
  ASSERT_TRUE(open(2));
  tier.workers[0]->freeze(true);
  // Expert of a slot on worker 1 for the one session, experts of the others for the other.
  inputs stuck(tier.shape, 1, 1);
  stuck.ids = {0, -1, -1};
  inputs free(tier.shape, 1, 2);
  free.ids = {4, 5, -1};
  auto waits = start(1, rows_of(stuck), 300 * k_millisecond);
  int served = 0;
  while (waits.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
    const auto out = forward(2, free);
    ASSERT_TRUE(out) << out.error().text;
    ++served;
  }
  const auto late = waits.get();
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, status::timeout);
  EXPECT_EQ(late.error().why, reason::worker_late) << late.error().text;
  EXPECT_GT(served, 0);
  // Its own session too serves calls that need others.
  EXPECT_TRUE(forward(1, free));
  tier.workers[0]->freeze(false);
  const auto again = forward(1, stuck);
  ASSERT_TRUE(again) << again.error().text;
  EXPECT_EQ(again->output, stuck.exact(tier.shape));
}

TEST_F(gateway_test, a_call_behind_a_stalled_one_ends_by_its_own_deadline) {
  ASSERT_TRUE(open(1));
  tier.workers[0]->freeze(true);
  inputs stuck(tier.shape, 1, 1);
  stuck.ids = {0, -1, -1};
  auto first = start(1, rows_of(stuck), 150 * k_millisecond);
  const auto second = start(1, rows_of(stuck), 20 * k_millisecond).get();
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().text, "forward did not end within 20 ms");
  EXPECT_FALSE(first.get());
}

TEST_F(gateway_test, more_calls_than_the_queue_holds_are_overloaded) {
  ASSERT_TRUE(open(1));
  tier.workers[0]->freeze(true);
  inputs stuck(tier.shape, 1, 1);
  stuck.ids = {0, -1, -1};
  std::vector<std::future<forward_result>> calls;
  for (int i = 0; i < 8; ++i) calls.push_back(start(1, rows_of(stuck), 200 * k_millisecond));
  int refused = 0;
  for (auto& call : calls) {
    const auto out = call.get();
    ASSERT_FALSE(out);
    if (out.error().code != status::overloaded) continue;
    ++refused;
    EXPECT_EQ(out.error().text, "no credit: a call of the session is served and 2 of 2 wait");
    EXPECT_GT(out.error().retry_after_ns, 0u);
  }
  EXPECT_GE(refused, 5);
}

TEST_F(gateway_test, calls_of_all_sessions_share_one_bound_of_bytes) {
  inputs stuck(tier.shape, 1, 1);
  stuck.ids = {0, -1, -1};
  const std::uint64_t one = client::bytes_held(rows_of(stuck), tier.shape.top_k);
  gateway small{*tier.carrier, {.sessions_max = 3, .bytes_max = 2 * one + 1}};
  const auto ask = [&](std::uint32_t id) {
    auto done = std::make_shared<std::promise<forward_result>>();
    small.forward(session_id(id), rows_of(stuck), 200 * k_millisecond,
                  [done](forward_result r) { done->set_value(std::move(r)); });
    return done->get_future();
  };
  for (std::uint32_t id = 1; id <= 3; ++id) {
    std::promise<expected<thin_place>> opened;
    small.open(wish(id), tier.snapshot,
               [&](expected<thin_place> place) { opened.set_value(std::move(place)); });
    const auto place = opened.get_future().get();
    ASSERT_TRUE(place);
    ASSERT_TRUE(tier.attach({wish(id).source, session_id(id), wish(id).incarnation}, place->shape,
                            place->address));
  }
  tier.workers[0]->freeze(true);
  auto first = ask(1);
  auto second = ask(2);
  EXPECT_EQ(small.bytes_held(), 2 * one);
  const auto third = ask(3).get();
  ASSERT_FALSE(third);
  EXPECT_EQ(third.error().text, "no credit: calls at the gateway hold " + std::to_string(2 * one) +
                                    " of " + std::to_string(2 * one + 1) +
                                    " bytes, this one takes " + std::to_string(one));
  EXPECT_EQ(third.error().retry_after_ns, 10 * k_millisecond);
  EXPECT_FALSE(first.get());
  EXPECT_FALSE(second.get());
  tier.workers[0]->freeze(false);
  forward_result again = third;
  const time_ns until = monotonic_now() + k_patience;
  while (!again && monotonic_now() < until) again = ask(3).get();
  ASSERT_TRUE(again) << again.error().text;
  // A call's share is given back a moment behind its answer.
  while (small.bytes_held() != 0 && monotonic_now() < until) std::this_thread::yield();
  EXPECT_EQ(small.bytes_held(), 0u);
}

TEST_F(gateway_test, closing_ends_what_waits_and_what_comes_after) {
  ASSERT_TRUE(open(1));
  tier.workers[0]->freeze(true);
  inputs stuck(tier.shape, 1, 1);
  stuck.ids = {0, -1, -1};
  auto served = start(1, rows_of(stuck), 100 * k_millisecond);
  auto waiting = start(1, rows_of(stuck), k_patience);
  thin.end(session_id(1));
  const auto cancelled = waiting.get();
  ASSERT_FALSE(cancelled);
  EXPECT_EQ(cancelled.error().text, "session 1 is closed");
  EXPECT_EQ(cancelled.error().code, status::cancelled);
  EXPECT_FALSE(served.get());
  const auto after = forward(1, stuck);
  ASSERT_FALSE(after);
  EXPECT_EQ(after.error().text, "session 1 is closed");
  EXPECT_EQ(thin.sessions(), 0u);
}

TEST_F(gateway_test, sessions_are_bounded_and_a_place_is_free_again_after_its_end) {
  for (std::uint32_t id = 1; id <= 3; ++id) ASSERT_TRUE(open(id));
  const auto fourth = open(4);
  ASSERT_FALSE(fourth);
  EXPECT_EQ(fourth.error().text, "no credit: the gateway's sessions are at their limit");
  EXPECT_EQ(fourth.error().code, status::overloaded);
  EXPECT_EQ(fourth.error().retry_after_ns, 100 * k_millisecond);
  thin.end(session_id(2));
  expected<void> retried = fourth;
  const time_ns until = monotonic_now() + k_patience;
  while (!retried && monotonic_now() < until) retried = open(4);  // its thread has to end first
  EXPECT_TRUE(retried);
}

TEST_F(gateway_test, a_session_whose_thread_cannot_start_is_refused_and_leaves_no_place_behind) {
  expected<void> refused;
  {
    const no_threads none;
    refused = open(1);
  }
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().text, "no credit: the gateway has no thread for one more session");
  EXPECT_EQ(refused.error().retry_after_ns, 100 * k_millisecond);
  EXPECT_EQ(thin.sessions(), 0u);
  EXPECT_TRUE(open(1));
}

TEST_F(gateway_test, a_session_for_whose_banks_there_is_no_memory_costs_itself_alone) {
  ASSERT_TRUE(open(1));
  poor_carrier none(*tier.carrier);
  gateway poor{none, {}};
  std::promise<expected<thin_place>> opened;
  poor.open(wish(2), tier.snapshot,
            [&](expected<thin_place> place) { opened.set_value(std::move(place)); });
  const auto refused = opened.get_future().get();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().text, "no credit: the gateway has no memory for one more session");
  EXPECT_EQ(refused.error().retry_after_ns, 100 * k_millisecond);
  EXPECT_TRUE(forward(1, inputs(tier.shape, 2, 1)));
}

TEST_F(gateway_test, a_lost_worker_with_a_replica_costs_a_replay) {
  // 9 slots, 8 experts: expert 2 lies on workers 1 and 2, and is taken from the live one.
  tier.place(2, {true, false, true});
  ASSERT_TRUE(open(1));
  tier.workers[0]->freeze(true);
  inputs in(tier.shape, 1, 1);
  in.ids = {2, -1, -1};
  auto call = start(1, rows_of(in), k_patience);
  ASSERT_EQ(call.wait_for(std::chrono::milliseconds(20)), std::future_status::timeout);
  tier.place(3, {false, true, true});
  thin.on_snapshot(tier.snapshot);
  const auto out = call.get();
  ASSERT_TRUE(out) << out.error().text;
  EXPECT_EQ(out->output, in.exact(tier.shape));
}

}  // namespace
}  // namespace moetier::coordinator
