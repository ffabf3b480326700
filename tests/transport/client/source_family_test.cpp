// What model families ask of the source half beyond routing: identity experts, weights on the
// input, shared experts and gates on the tier, flagged rows; each in both return modes.

#include <cstring>

#include "kernels/routing/route.hpp"
#include "kernels/routing/router_logits.hpp"
#include "tests/transport/client/session_rig.hpp"

namespace moetier::client::toy {
namespace {

using kernels::return_mode;

constexpr std::uint32_t k_tokens = 7;

class source_family : public testing::TestWithParam<return_mode> {
 protected:
  source_session_options wish() const {
    source_session_options w;
    w.mode = GetParam();
    return w;
  }
  // One row through weighted experts; `x` may differ from expert to expert.
  struct term {
    float weight;
    std::uint32_t expert;  // k_identity: the row itself
    std::vector<float> x;
  };
  static constexpr std::uint32_t k_identity = 0xffff;
  static void add(std::vector<float>& to, const std::vector<term>& terms, std::uint32_t width) {
    for (std::uint32_t h = 0; h < width; ++h) {
      float sum = 0;
      for (const term& t : terms) {
        const float y = t.expert == k_identity ? t.x[h] : expert(t.expert, t.x.data(), h, width);
        sum = std::fma(t.weight, y, sum);
      }
      to.push_back(sum);
    }
  }
  static std::vector<float> row_of(const inputs& in, std::uint32_t t, std::uint32_t width) {
    const auto first = in.hidden.begin() + std::ptrdiff_t{t} * width;
    return {first, first + width};
  }
  void expect(session_rig& rig, const layer_call& call, const std::vector<float>& wanted) {
    ASSERT_TRUE(rig.session->step_begin(false));
    const auto out = rig.forward(call);
    ASSERT_TRUE(out) << out.error().text;
    if (GetParam() == return_mode::exact) {
      expect_bits(*out, wanted);
    } else {
      expect_near(*out, wanted);
    }
  }
};

TEST_P(source_family, identity_experts_add_the_row_and_never_travel) {
  session_rig rig({}, wish(), [](auto& s) {
    s.model.routing = {.method = routing_method::softmax_bias_raw, .identity_experts = 4};
    s.routing.rule = s.model.routing;
  });
  inputs in(rig.shape, k_tokens, 3);
  in.ids[1] = 8;   // of row 0
  in.ids[3] = 11;  // row 1: nothing but identity
  in.ids[4] = in.ids[5] = -1;
  std::vector<float> wanted;
  for (std::uint32_t t = 0; t < k_tokens; ++t) {
    std::vector<term> terms;
    for (std::uint32_t j = 0; j < 3; ++j) {
      const std::int32_t id = in.ids[t * 3 + j];
      if (id < 0) continue;
      terms.push_back({in.weights[t * 3 + j], id >= 8 ? k_identity : static_cast<std::uint32_t>(id),
                       row_of(in, t, 10)});
    }
    add(wanted, terms, 10);
  }
  expect(rig, rig.call_of(in), wanted);
  in.ids[1] = 12;
  layer_call call = rig.call_of(in);
  call.layer = layer_id(3);
  const auto refused = rig.session->submit(call);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().text,
            "row 0 position 1 names expert 12; allowed: -1 (none) or 0 to 11");
}

TEST_P(source_family, a_weight_on_the_input_multiplies_the_row_once) {
  session_rig rig({.top_k = 1}, wish(), [](auto& s) { s.model.weight_at = weight_point::input; });
  const inputs in(rig.shape, k_tokens, 4);
  std::vector<float> wanted;
  for (std::uint32_t t = 0; t < k_tokens; ++t) {
    std::vector<float> x = row_of(in, t, 10);
    for (float& v : x) v *= in.weights[t];
    add(wanted,
        in.ids[t] < 0 ? std::vector<term>{}
                      : std::vector<term>{{1.0F, static_cast<std::uint32_t>(in.ids[t]), x}},
        10);
  }
  expect(rig, rig.call_of(in), wanted);
}

TEST_P(source_family, shared_experts_visit_every_token_once_and_are_summed_last) {
  source_session_options options = wish();
  options.shared_experts = true;
  session_rig rig({}, options, [](auto& s) { s.shared_experts = s.model.shared.count = 2; });
  EXPECT_EQ(rig.session->shape().top_k, 5u);
  inputs in(rig.shape, k_tokens, 5);
  in.ids[6] = in.ids[7] = in.ids[8] = -1;  // row 2 has no routed expert at all
  std::vector<float> wanted;
  for (std::uint32_t t = 0; t < k_tokens; ++t) {
    std::vector<term> terms;
    for (std::uint32_t j = 0; j < 3; ++j) {
      const std::int32_t id = in.ids[t * 3 + j];
      if (id >= 0)
        terms.push_back({in.weights[t * 3 + j], static_cast<std::uint32_t>(id), row_of(in, t, 10)});
    }
    terms.push_back({1.0F, k_shared_base, row_of(in, t, 10)});
    terms.push_back({1.0F, k_shared_base + 1, row_of(in, t, 10)});
    add(wanted, terms, 10);
  }
  expect(rig, rig.call_of(in), wanted);
}

TEST_P(source_family, shared_experts_read_the_unweighted_row_where_the_weight_is_on_the_input) {
  source_session_options options = wish();
  options.shared_experts = true;
  options.rows_per_chunk_max = 3;
  session_rig rig({.top_k = 1}, options, [](auto& s) {
    s.model.weight_at = weight_point::input;
    s.shared_experts = s.model.shared.count = 1;
  });
  EXPECT_EQ(rig.session->shape().rows_max, 6u);  // two rows a token
  const inputs in(rig.shape, k_tokens, 6);
  std::vector<float> wanted;
  for (std::uint32_t t = 0; t < k_tokens; ++t) {
    std::vector<float> x = row_of(in, t, 10);
    for (float& v : x) v *= in.weights[t];
    std::vector<term> terms;
    if (in.ids[t] >= 0) terms.push_back({1.0F, static_cast<std::uint32_t>(in.ids[t]), x});
    terms.push_back({1.0F, k_shared_base, row_of(in, t, 10)});
    add(wanted, terms, 10);
  }
  expect(rig, rig.call_of(in), wanted);
}

TEST_P(source_family, a_gate_weighs_the_shared_experts_by_its_sigmoid) {
  source_session_options options = wish();
  options.shared_experts = true;
  session_rig rig({}, options, [](auto& s) {
    s.shared_experts = s.model.shared.count = 1;
    s.model.shared.gated = true;
    auto tables = std::make_shared<routing_tables>(*s.tables);
    for (layer_routing& l : tables->layers) l.shared_gate.assign(10, 0.25F);
    s.tables = tables;
  });
  const inputs in(rig.shape, k_tokens, 8);
  ASSERT_TRUE(rig.session->step_begin(false));
  const auto out = rig.forward(rig.call_of(in));
  ASSERT_TRUE(out) << out.error().text;
  std::vector<float> wanted;
  for (std::uint32_t t = 0; t < k_tokens; ++t) {
    std::vector<term> terms;
    double gate = 0;
    for (const float v : row_of(in, t, 10)) gate += 0.25 * v;
    for (std::uint32_t j = 0; j < 3; ++j) {
      const std::int32_t id = in.ids[t * 3 + j];
      if (id >= 0)
        terms.push_back({in.weights[t * 3 + j], static_cast<std::uint32_t>(id), row_of(in, t, 10)});
    }
    terms.push_back(
        {static_cast<float>(1 / (1 + std::exp(-gate))), k_shared_base, row_of(in, t, 10)});
    add(wanted, terms, 10);
  }
  expect_near(*out, wanted);
}

TEST_P(source_family, a_gate_on_the_tier_routes_by_its_own_logits) {
  std::vector<float> matrix(8 * 10);
  std::minstd_rand random(3);
  for (float& w : matrix) w = static_cast<float>(random() % 200) * 0.01F - 1.0F;
  auto router = std::make_shared<layer_router>();
  router->columns = 8;
  router->width = 10;
  router->matrix.resize(matrix.size() * 4);
  std::memcpy(router->matrix.data(), matrix.data(), router->matrix.size());
  layer_router other = *router;
  std::fill(other.matrix.begin(), other.matrix.end(), std::byte{0});
  std::vector<std::size_t> asked;
  source_session_options options = wish();
  options.router = [&](std::size_t index) -> expected<layer_router_ptr> {
    asked.push_back(index);
    // Layer 2, which is called, is the second MoE layer: another's router would route otherwise.
    if (index != 1) return layer_router_ptr(std::make_shared<layer_router>(other));
    return layer_router_ptr(router);
  };
  session_rig rig({}, options);
  EXPECT_EQ(asked.size(), rig.newest->model.moe_layers.size()) << "all of them, when it opens";
  const std::size_t asked_by_opening = asked.size();
  inputs in(rig.shape, k_tokens, 9);
  std::vector<float> logits(k_tokens * 8);
  kernels::router_logits({.weights = matrix.data(), .type = dtype::f32, .columns = 8, .width = 10},
                         in.hidden.data(), 40, k_tokens, logits.data(), 32);
  ASSERT_TRUE(kernels::route(rig.newest->routing, {},
                             {.logits = logits.data(), .pitch_bytes = 32, .tokens = k_tokens},
                             in.ids, in.weights));
  layer_call call = rig.call_of(in);
  call.ids = {};
  call.weights = {};
  expect(rig, call, in.exact(rig.shape));
  EXPECT_EQ(asked.size(), asked_by_opening) << "no call asks the coordinator";
}

TEST_P(source_family, a_flagged_row_gets_no_expert_and_leaves_the_others_as_they_are) {
  source_session_options options = wish();
  options.flags_bad_rows = true;
  session_rig rig({}, options);
  inputs in(rig.shape, k_tokens, 10);
  std::vector<float> logits(k_tokens * 8);
  std::minstd_rand random(4);
  for (float& l : logits) l = static_cast<float>(random() % 100) * 0.03F;
  ASSERT_TRUE(kernels::route(rig.newest->routing, {},
                             {.logits = logits.data(), .pitch_bytes = 32, .tokens = k_tokens},
                             in.ids, in.weights));
  logits[3 * 8 + 5] = std::numeric_limits<float>::quiet_NaN();
  for (std::uint32_t j = 0; j < 3; ++j) in.ids[3 * 3 + j] = -1;
  layer_call call = rig.call_of(in);
  call.ids = {};
  call.weights = {};
  call.logits = logits.data();
  call.logits_pitch = 32;
  ASSERT_TRUE(rig.session->step_begin(false));
  ASSERT_TRUE(rig.session->submit(call));
  std::vector<float> out;
  std::vector<std::int32_t> ids(k_tokens * 3);
  std::vector<std::uint8_t> bad(k_tokens, 9);
  layer_result result = rig.result_to(out, k_tokens);
  result.ids = ids;
  result.bad_rows = bad;
  ASSERT_TRUE(rig.session->collect(0, result));
  EXPECT_EQ(bad, (std::vector<std::uint8_t>{0, 0, 0, 1, 0, 0, 0}));
  EXPECT_EQ(ids, in.ids);
  expect_near(out, in.exact(rig.shape));
}

TEST(source_family_refusals, what_the_tier_does_not_hold_or_the_layer_needs) {
  const session_rig none({}, {.shared_experts = true});
  ASSERT_TRUE(none.open_error);
  EXPECT_EQ(none.open_error->text,
            "shared_experts tier (the model has none; a dense block beside its experts is the "
            "client's) is not enabled");
  const session_rig off({}, {.shared_experts = true}, [](auto& s) {
    s.model.shared = {.intermediate_size = s.model.intermediate_size, .count = 1};
  });
  ASSERT_TRUE(off.open_error);
  EXPECT_EQ(off.open_error->text,
            "shared_experts tier (the workers of this tier do not hold them) is not enabled");
  const session_rig apart({}, {.router = [](std::size_t) -> expected<layer_router_ptr> {
                            return fail(reason::internal_error, "never asked");
                          }},
                          [](auto& s) { s.model.router_reads_hidden = false; });
  ASSERT_TRUE(apart.open_error);
  EXPECT_EQ(apart.open_error->text,
            "gate tier (this model's router reads another vector than its experts) is not enabled");

  session_rig hashed({}, {}, [](auto& s) {
    s.model.routing.method = s.routing.rule.method = routing_method::deepseek_v4;
    auto tables = std::make_shared<routing_tables>(*s.tables);
    for (layer_routing& l : tables->layers) {
      l.table = {0, 1, 2, 3, 4, 5};
      l.table_rows = 2;
    }
    s.tables = tables;
  });
  ASSERT_TRUE(hashed.session);
  ASSERT_TRUE(hashed.session->step_begin(false));
  const inputs in(hashed.shape, 2, 1);
  const std::vector<float> logits(2 * 8, 0.5F);
  layer_call call = hashed.call_of(in);
  call.ids = {};
  call.weights = {};
  call.logits = logits.data();
  call.logits_pitch = 32;
  auto refused = hashed.session->submit(call);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().text, "layer 2 chooses experts by token id; the call has no token_ids");
  const std::vector<std::int32_t> outside{1, 2};
  call.token_ids = outside;
  refused = hashed.session->submit(call);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().text, "row 1 has token id 2; allowed: 0 to 1");
  const std::vector<std::int32_t> short_ids{1};
  call.token_ids = short_ids;
  refused = hashed.session->submit(call);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().text, "token_ids has shape [1]; expected [2]");
  const std::vector<std::int32_t> adapters{0, -1};
  call.token_ids = {};
  call.adapter_ids = adapters;
  refused = hashed.session->submit(call);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().why, reason::lora_unsupported);
}

INSTANTIATE_TEST_SUITE_P(both_modes, source_family,
                         testing::Values(return_mode::partial, return_mode::exact),
                         [](const auto& mode) {
                           return mode.param == return_mode::exact ? "exact" : "partial";
                         });

}  // namespace
}  // namespace moetier::client::toy
