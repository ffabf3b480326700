#include "schemas/resolution/problem.hpp"

#include <gtest/gtest.h>

#include "tests/schemas/resolution/small_values.hpp"

namespace moetier::resolution {
namespace {

TEST(problems, come_from_the_model) {
  model_description m;
  m.hidden_size = 64;
  m.intermediate_size = 32;
  m.experts = 4;
  m.top_k = 2;
  m.router_width = 64;
  m.routing = {.method = routing_method::deepseek_v3, .groups = 2, .groups_kept = 1};
  m.format = {.quant = quant_kind::fp8_block};
  const problem p = problem_of(m, answer_mode::exact);
  EXPECT_EQ(p.quant, quant_kind::fp8_block);
  EXPECT_EQ(p.hidden_size, 64u);
  EXPECT_EQ(p.num_experts, 4u);
  EXPECT_EQ(p.groups, 2u);
  EXPECT_EQ(p.return_mode, answer_mode::exact);
  EXPECT_EQ(p.dtype_act, dtype::bf16);
  EXPECT_FALSE(p.constant_alpha || p.constant_beta || p.constant_clamp);
}

TEST(problems, count_a_clamp_that_one_layer_has) {
  model_description m;
  m.limits = {0.0F, 7.0F};
  EXPECT_TRUE(problem_of(m, answer_mode::partial).constant_clamp);
  m.limits = {0.0F, 0.0F};
  EXPECT_FALSE(problem_of(m, answer_mode::partial).constant_clamp);
  m.activation = {.kind = activation_kind::swiglu_bias, .constants = {.alpha = 1.0F}};
  EXPECT_TRUE(problem_of(m, answer_mode::partial).constant_alpha);
  EXPECT_TRUE(problem_of(m, answer_mode::partial).constant_beta);
}

TEST(problems, are_refused_out_of_range) {
  const auto text = [](auto change) {
    problem p = small_problem();
    change(p);
    const auto checked = check_problem(p);
    return checked ? std::string("ok") : checked.error().text;
  };
  EXPECT_EQ(text([](problem&) {}), "ok");
  EXPECT_EQ(text([](problem& p) { p.hidden_size = 0; }), "hidden_size is 0; allowed: 1 to 65536");
  EXPECT_EQ(text([](problem& p) { p.top_k = 9; }), "top_k is 9; allowed: 1 to 8");
  EXPECT_EQ(text([](problem& p) { p.num_experts = 4097; }),
            "num_experts is 4097; allowed: 1 to 4096");
}

TEST(deployments, are_refused_out_of_range_or_with_lists_of_another_length) {
  const auto text = [](auto change) {
    deployment d = small_deployment();
    change(d);
    const auto checked = check_deployment(d);
    return checked ? std::string("ok") : checked.error().text;
  };
  EXPECT_EQ(text([](deployment&) {}), "ok");
  EXPECT_EQ(text([](deployment& d) { d.workers = 64; }), "ok");
  EXPECT_EQ(text([](deployment& d) { d.workers = 65; }), "workers is 65; allowed: 1 to 64");
  EXPECT_EQ(text([](deployment& d) { d.slots_per_worker = {8}; }),
            "slots_per_worker is a list of 1; allowed: one entry for each of 2 workers");
  EXPECT_EQ(text([](deployment& d) {
              d.slots_per_worker = {8, 1};
            }),
            "slots_per_worker is 9 in all; allowed: num_slots = 8");
  EXPECT_EQ(text([](deployment& d) {
              d.labels = {"a", "b", "c"};
            }),
            "labels is a list of 3; allowed: one entry for each of 2 workers");
}

TEST(deployments, know_their_slots_and_places) {
  deployment d{.workers = 4, .sources = 2, .num_slots = 10, .tokens_max = 100};
  EXPECT_EQ(slots_of(d, 1), 3u);
  EXPECT_EQ(slots_of(d, 2), 2u);
  EXPECT_EQ(most_slots(d), 3u);
  EXPECT_FALSE(slots_uniform(d));
  EXPECT_EQ(rows_of_chunk(d), 200u);
  d.rows_per_chunk = 64;
  EXPECT_EQ(rows_of_chunk(d), 64u);
  d.slots_per_worker = {4, 2, 2, 2};
  EXPECT_FALSE(slots_uniform(d));
  EXPECT_EQ(most_slots(d), 4u);
  d.slots_per_worker = {3, 3, 3, 3};
  EXPECT_TRUE(slots_uniform(d));
  d.labels = {"c/h1/d1", "c/h1/d1", "c/h1/d2", "c/h1"};
  EXPECT_TRUE(same_place(d, 1));
  EXPECT_TRUE(same_place(d, 2));
  EXPECT_FALSE(same_place(d, 3));
  d.labels = {"c/h1", "c/h1", "c/h1", "c/h11"};
  EXPECT_FALSE(same_place(d, 2));
}

TEST(uneven_slots, are_answered_with_the_nearest_number_of_workers) {
  EXPECT_EQ(uneven_remedy(256, 6, 256),
            "256 slots over 6 workers are uneven; take 258 slots with replicas, or 4 workers");
  EXPECT_EQ(uneven_remedy(10, 4, 10),
            "10 slots over 4 workers are uneven; take 12 slots with replicas, or 5 workers");
  EXPECT_EQ(uneven_remedy(7, 3, 7),
            "7 slots over 3 workers are uneven; take 9 slots with replicas, or 1 worker");
  EXPECT_EQ(uneven_remedy(8, 6, 9),
            "9 slots over 6 workers are uneven; take 12 slots with replicas, or 4 workers");
}

}  // namespace
}  // namespace moetier::resolution
