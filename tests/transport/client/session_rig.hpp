#pragma once
// One source session on a scripted carrier, with the snapshots in the test's hand.

#include <gtest/gtest.h>

#include "tests/transport/client/scripted_carrier.hpp"
#include "transport/client/source/source_session.hpp"

namespace moetier::client::toy {

// A deadline that only a hang passes, however loaded the machine is.
inline constexpr duration_ns k_ample = 60 * k_second;

class session_rig {
 public:
  explicit session_rig(const tier_shape& tier = {}, source_session_options wish = {},
                       const std::function<void(transport::routing_snapshot&)>& change = {})
      : shape(tier) {
    transport::routing_snapshot first = make_snapshot(shape);
    if (change) change(first);
    publish(std::move(first));
    carrier.placed = newest.get();
    wish.session = session_id(5);
    wish.source = source_id(2);
    wish.incarnation = incarnation_id(0xabc);
    if (wish.tokens_max == 0) wish.tokens_max = 16;
    if (wish.call_deadline == k_second) wish.call_deadline = k_ample;
    if (wish.top_k == 0) wish.top_k = shape.top_k;
    wish.newest = [this] { return newest; };
    wish.wait_newer = [this](const transport::routing_snapshot& seen, duration_ns limit) {
      ++waited;
      waited_limit = limit;
      if (on_wait_newer) on_wait_newer();
      return transport::is_newer(*newest, seen) ? newest : nullptr;
    };
    auto opened = source_session::open(carrier, wish, newest);
    if (!opened) {
      open_error = opened.error();
      return;
    }
    session = std::move(*opened);
  }

  void publish(transport::routing_snapshot snapshot) {
    newest = std::make_shared<const transport::routing_snapshot>(std::move(snapshot));
    history.push_back(newest);
  }

  static layer_call call_of(const inputs& in, std::uint32_t width) {
    return {.layer = layer_id(2),
            .tokens = in.tokens,
            .hidden = in.hidden.data(),
            .hidden_pitch = width * sizeof(float),
            .ids = in.ids,
            .weights = in.weights};
  }
  layer_call call_of(const inputs& in) const { return call_of(in, shape.hidden_size); }

  layer_result result_to(std::vector<float>& out, std::uint32_t tokens) const {
    out.assign(std::size_t{tokens} * shape.hidden_size, -7.0F);
    return {.output = out.data(), .pitch = shape.hidden_size * sizeof(float)};
  }

  expected<std::vector<float>> forward(const inputs& in, std::uint16_t micro_batch = 0) {
    layer_call call = call_of(in);
    call.micro_batch = micro_batch;
    return forward(call);
  }
  expected<std::vector<float>> forward(const layer_call& call) {
    if (auto ok = session->submit(call); !ok) return unexpected_error(ok.error());
    std::vector<float> out;
    const layer_result result = result_to(out, call.tokens);
    if (auto ok = session->collect(call.micro_batch, result); !ok) {
      return unexpected_error(ok.error());
    }
    return out;
  }

  tier_shape shape;
  scripted_carrier carrier;
  transport::snapshot_ptr newest;
  std::vector<transport::snapshot_ptr> history;
  std::unique_ptr<source_session> session;
  std::optional<error> open_error;
  int waited = 0;
  duration_ns waited_limit = 0;
  std::function<void()> on_wait_newer;
};

inline void expect_bits(const std::vector<float>& a, const std::vector<float>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(std::bit_cast<std::uint32_t>(a[i]), std::bit_cast<std::uint32_t>(b[i])) << "at " << i;
  }
}

inline void expect_near(const std::vector<float>& a, const std::vector<float>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    ASSERT_NEAR(a[i], b[i], 1e-5F * (1.0F + std::abs(b[i]))) << "at " << i;
  }
}

}  // namespace moetier::client::toy
