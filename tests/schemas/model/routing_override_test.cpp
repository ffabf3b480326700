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
                                    .renormalise = false,
                                    .scaling = 3.0F,
                                    .epsilon = 1e-6F,
                                    .power = 2.0F,
                                    .groups = 4,
                                    .groups_kept = 2},
                                   grouped());
  ASSERT_TRUE(model) << model.error().text;
  EXPECT_EQ(model->routing, (routing_rule{.method = routing_method::softmax_group,
                                          .renormalise = false,
                                          .scaling = 3.0F,
                                          .epsilon = 1e-6F,
                                          .power = 2.0F,
                                          .groups = 4,
                                          .groups_kept = 2}));
  EXPECT_NE(model->fingerprint, grouped().fingerprint);
  EXPECT_EQ(model->fingerprint, fingerprint_of(*model));
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
  EXPECT_EQ(refusal({.method = routing_method::minimax2, .groups = 1}), "ok");
  EXPECT_EQ(refusal({.groups = 1, .groups_kept = 77}), "ok") << "one group is kept whole";
  EXPECT_EQ(refusal({.method = routing_method::unspecified}),
            "setting model.routing.method is 8; allowed: a routing method but unspecified");
  EXPECT_EQ(refusal({.scaling = INFINITY}),
            "setting model.routing.scaling is inf; allowed: a finite number but 0");
  EXPECT_EQ(refusal({.epsilon = -1.0F}),
            "setting model.routing.epsilon is -1; allowed: a finite number, 0 or above");
  EXPECT_EQ(refusal({.method = routing_method::sparse_mixer, .epsilon = 0.0F, .groups = 1}),
            "setting model.routing.epsilon is 0; allowed: a finite number above 0");
  EXPECT_EQ(refusal({.power = 0.0F}),
            "setting model.routing.power is 0; allowed: a finite number above 0");
  model_description zero = grouped();
  zero.routing = {.method = routing_method::softmax_bias_raw, .identity_experts = 4};
  EXPECT_EQ(refusal({.method = routing_method::softmax_bias}, zero),
            "setting model.routing.method is softmax_bias; allowed: softmax_bias_raw, as the model "
            "has identity experts");
}

}  // namespace
}  // namespace moetier
