#include "schemas/model/routing_override.hpp"

#include <cmath>

#include <gtest/gtest.h>

namespace moetier {
namespace {

model_description grouped() {
  model_description model;
  model.experts = 32;
  model.top_k = 6;
  model.routing = {
      .method = routing_method::deepseek_v3, .scaling = 2.5F, .groups = 8, .groups_kept = 4};
  model.fingerprint = fingerprint_of(model);
  return model;
}

model_description plain() {
  model_description model;
  model.experts = 32;
  model.top_k = 6;
  model.routing.method = routing_method::renormalize_naive;
  model.fingerprint = fingerprint_of(model);
  return model;
}

std::string refusal(const routing_override& given, const model_description& model = grouped()) {
  const auto applied = apply_routing(given, model);
  return applied ? "ok" : applied.error().text;
}

TEST(routing_override, without_values_the_model_stays_as_it_is) {
  EXPECT_EQ(*apply_routing({}, grouped()), grouped());
  // Even one that an older rule would refuse: nobody asked for a change.
  model_description odd = grouped();
  odd.routing.groups_kept = 9;
  EXPECT_EQ(*apply_routing({}, odd), odd);
}

TEST(routing_override, every_value_takes_the_place_of_the_models) {
  const auto model = apply_routing({.method = routing_method::softmax_group,
                                    .renormalise = true,
                                    .scaling = 3.0F,
                                    .epsilon = 1e-6F,
                                    .groups = 4,
                                    .groups_kept = 2},
                                   grouped());
  ASSERT_TRUE(model) << model.error().text;
  EXPECT_EQ(model->routing, (routing_rule{.method = routing_method::softmax_group,
                                          .renormalise = true,
                                          .scaling = 3.0F,
                                          .epsilon = 1e-6F,
                                          .groups = 4,
                                          .groups_kept = 2}));
  EXPECT_NE(model->fingerprint, grouped().fingerprint);
  EXPECT_EQ(model->fingerprint, fingerprint_of(*model));
  model_description dbrx = plain();
  dbrx.routing.method = routing_method::softmax_pnorm;
  EXPECT_EQ(apply_routing({.power = 2.0F}, dbrx)->routing.power, 2.0F);
  EXPECT_FALSE(apply_routing({.renormalise = false}, grouped())->routing.renormalise);
}

TEST(routing_override, renormalise_changes_a_softmax_as_its_key_does) {
  const auto raw = apply_routing({.renormalise = false}, plain());
  ASSERT_TRUE(raw) << raw.error().text;
  EXPECT_EQ(raw->routing,
            (routing_rule{.method = routing_method::default_softmax, .renormalise = false}));
  EXPECT_EQ(*apply_routing({.renormalise = true}, *raw), plain());
  EXPECT_EQ(refusal({.method = routing_method::renormalize_naive, .renormalise = false}, plain()),
            "setting model.routing.renormalise is false; allowed: true with method "
            "renormalize_naive");
}

TEST(routing_override, a_value_that_the_method_does_not_read_is_refused) {
  const std::string unread = "; allowed: none, as method renormalize_naive does not read it; read ";
  EXPECT_EQ(refusal({.epsilon = 0.5F}, plain()),
            "setting model.routing.epsilon is 0.5" + unread +
                "by deepseek_v3, minimax2, sigmoid_renorm, deepseek_v4, sqrt_softplus, "
                "sparse_mixer, softmax_group, softmax_bias");
  EXPECT_EQ(refusal({.power = 2.0F}, plain()),
            "setting model.routing.power is 2" + unread + "by softmax_pnorm");
  EXPECT_EQ(refusal({.scaling = 2.0F}, plain()),
            "setting model.routing.scaling is 2" + unread +
                "by deepseek_v3, minimax2, deepseek_v4, deepseek_v2, sqrt_softplus, "
                "softmax_group, softmax_bias_raw");
  EXPECT_EQ(refusal({.scaling = 1.0F}, plain()), "ok");
  for (const std::uint32_t kept : {0u, 17u}) {
    EXPECT_EQ(refusal({.groups_kept = kept}, plain()),
              "setting model.routing.groups_kept is " + std::to_string(kept) + unread +
                  "by deepseek_v3, deepseek_v2, softmax_group");
  }
  EXPECT_EQ(refusal({.groups_kept = 1}, plain()), "ok");
  EXPECT_EQ(refusal({.groups = 2}, plain()), "setting model.routing.groups is 2" + unread +
                                                 "by deepseek_v3, deepseek_v2, softmax_group");
  EXPECT_EQ(refusal({.method = routing_method::renormalize, .renormalise = true}, plain()),
            "setting model.routing.renormalise is true; allowed: none, as method renormalize does "
            "not read it; read by deepseek_v3, sigmoid_renorm, softmax_group, default, "
            "renormalize_naive");
  EXPECT_EQ(refusal({.renormalise = false, .epsilon = 1e-6F}),
            "setting model.routing.epsilon is 1e-06; allowed: none without renormalise, as nothing "
            "is divided");
  EXPECT_EQ(refusal({.method = routing_method::renormalize, .groups = 1}),
            "setting model.routing.scaling is 2.5; allowed: 1, as method renormalize does not "
            "scale");
  EXPECT_EQ(refusal({.method = routing_method::renormalize, .scaling = 1.0F, .groups = 1}), "ok");
}

TEST(routing_override, refuses_by_setting_what_does_not_fit_the_model) {
  EXPECT_EQ(refusal({.groups = 5}),
            "setting model.routing.groups is 5; allowed: a divisor of the 32 experts");
  EXPECT_EQ(refusal({.groups = 0}),
            "setting model.routing.groups is 0; allowed: a divisor of the 32 experts");
  EXPECT_EQ(refusal({.groups_kept = 9}), "setting model.routing.groups_kept is 9; allowed: 1 to 8");
  EXPECT_EQ(refusal({.groups_kept = 0}), "setting model.routing.groups_kept is 0; allowed: 1 to 8");
  EXPECT_EQ(refusal({.groups_kept = 1}),
            "setting model.routing.groups_kept is 1; allowed: groups with at least 6 experts; "
            "these have 4");
  EXPECT_EQ(refusal({.groups_kept = 2}), "ok");
  EXPECT_EQ(refusal({.method = routing_method::minimax2}),
            "setting model.routing.groups is 8; allowed: 1, as method minimax2 has no groups");
  model_description odd = plain();
  odd.routing.groups_kept = 4;
  EXPECT_EQ(find_flaw(odd.routing, 32, 6)->allowed, "1, as method renormalize_naive has no groups");
  EXPECT_EQ(refusal({.method = routing_method::minimax2, .groups = 1}), "ok");
  EXPECT_EQ(apply_routing({.groups = 1}, grouped())->routing.groups_kept, 1u);
  EXPECT_EQ(refusal({.groups = 1, .groups_kept = 77}),
            "setting model.routing.groups_kept is 77; allowed: 1 to 1");
  EXPECT_EQ(refusal({.scaling = -1.0F}),
            "setting model.routing.scaling is -1; allowed: a finite number above 0");
  EXPECT_EQ(refusal({.method = routing_method::unspecified}),
            "setting model.routing.method is 8; allowed: a routing method but unspecified");
  EXPECT_EQ(refusal({.scaling = INFINITY}),
            "setting model.routing.scaling is inf; allowed: a finite number above 0");
  EXPECT_EQ(refusal({.epsilon = -1.0F}),
            "setting model.routing.epsilon is -1; allowed: a finite number, 0 or above");
  EXPECT_EQ(
      refusal(
          {.method = routing_method::sparse_mixer, .scaling = 1.0F, .epsilon = 0.0F, .groups = 1}),
      "setting model.routing.epsilon is 0; allowed: a finite number above 0");
  model_description dbrx = plain();
  dbrx.routing.method = routing_method::softmax_pnorm;
  EXPECT_EQ(refusal({.power = 0.0F}, dbrx),
            "setting model.routing.power is 0; allowed: a finite number above 0");
  model_description zero = grouped();
  zero.routing = {.method = routing_method::softmax_bias_raw, .identity_experts = 4};
  EXPECT_EQ(refusal({.method = routing_method::softmax_bias}, zero),
            "setting model.routing.method is softmax_bias; allowed: softmax_bias_raw, as the model "
            "has identity experts");
}

}  // namespace
}  // namespace moetier
