#pragma once
// A service and a session of the C ABI on a toy tier, and the tensors of one call. Thread: owner.

#include <vector>

#include <gtest/gtest.h>

#include "tests/transport/client/session_rig.hpp"
#include "tests/transport/client/toy_service.hpp"

namespace moetier::client::toy {

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

}  // namespace moetier::client::toy
