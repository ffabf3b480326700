// run() and route() allocate nothing, whatever the threads.
#include <gtest/gtest.h>

#include "kernels/routing/route.hpp"
#include "tests/allocation_count.hpp"
#include "tests/kernels/expert_case.hpp"
#include "tests/kernels/routing_shapes.hpp"

namespace moetier::kernels {
namespace {

void expect_no_allocation(const expert_shape& shape) {
  const std::size_t hidden = shape.hidden_size;
  for (const std::string_view name : {"cpu_ref", "cpu_avx2", "reference"}) {
    if (!runs_here(name)) continue;
    for (const unsigned threads : {1u, 3u}) {
      for (const return_mode mode : {return_mode::partial, return_mode::exact}) {
        std::mt19937 random(41);
        const auto backend = backend_of(name, shape, threads);
        page_table pages(*backend);
        pages.add(random_expert(shape, random));
        pages.add(random_expert(shape, random));
        const std::vector<float> x = random_rows(100 * hidden, random);
        std::vector<float> y(2 * x.size());
        const row_region in = rows_in(x, hidden);
        const out_region out = rows_out(y, hidden);
        std::vector<expert_entry> entries;
        for (std::uint32_t r = 0; r < 100; ++r) {
          entries.push_back({.row = r, .position = 0, .slot = 1, .weight = 1.0F});
          entries.push_back({.row = r, .position = 1, .slot = 0, .weight = 1.0F});
        }
        std::vector<expert_entry> scratch(entries.size());
        std::vector<std::uint32_t> counts(2);
        aligned_bytes workspace(backend->workspace_bytes(100, 2));
        const std::size_t before = allocations.load();
        group_entries(entries, scratch, counts);
        const compute_status status = backend->run({.in = {&in, 1},
                                                    .out = {&out, 1},
                                                    .entries = entries,
                                                    .pages = pages.table(),
                                                    .k_in = 2,
                                                    .mode = mode,
                                                    .workspace = workspace.span()});
        const std::size_t after = allocations.load();
        EXPECT_EQ(status, compute_status::ok);
        EXPECT_EQ(after - before, 0u) << name << " threads " << threads;
      }
    }
  }
}

TEST(the_compute_path, allocates_nothing_in_run) {
  expect_no_allocation({.hidden_size = 200, .intermediate_size = 120});
}

TEST(the_compute_path, allocates_nothing_in_run_over_quantised_weights_with_biases) {
  for (unsigned quant = 1; quant < k_quant_kinds; ++quant) {
    expect_no_allocation({.hidden_size = 128,
                          .intermediate_size = 128,
                          .format = {.quant = static_cast<quant_kind>(quant)},
                          .activation = activation_kind::swiglu_bias,
                          .bias = true});
  }
}

TEST(the_compute_path, allocates_nothing_in_route_and_check_given) {
  std::mt19937 random(42);
  const std::vector<float> logits = random_rows(8 * 300, random);
  std::vector<std::int32_t> ids(8 * 20);
  std::vector<float> weights(8 * 20);
  const std::size_t before = allocations.load();
  const bool routed =
      route({{.method = routing_method::renormalize}, 300, 20}, {},
            {.logits = logits.data(), .pitch_bytes = 300 * sizeof(float), .tokens = 8}, ids,
            weights)
          .has_value();
  const bool given = check_given(300, 20, 8, ids, weights).has_value();
  const std::size_t after = allocations.load();
  EXPECT_TRUE(routed && given);
  EXPECT_EQ(after - before, 0u);
}

TEST(the_compute_path, allocates_nothing_by_any_routing_method) {
  std::mt19937 random(43);
  for (const routing_shape& shape : routing_shapes()) {
    const routing_params& p = shape.params;
    const layer_routing layer = layer_of(shape, random);
    const std::vector<float> logits = rows_of(p.columns(), 6, random);
    std::vector<std::int32_t> ids(std::size_t{6} * p.top_k);
    std::vector<float> weights(ids.size());
    std::vector<std::uint8_t> flags(6);
    const route_input input{
        .logits = logits.data(), .pitch_bytes = p.columns() * sizeof(float), .tokens = 6};
    const std::size_t before = allocations.load();
    const bool routed = route_flagging(p, layer, input, ids, weights, flags).has_value();
    const std::size_t after = allocations.load();
    EXPECT_TRUE(routed);
    EXPECT_EQ(after - before, 0u) << routing_method_name(p.rule.method);
  }
}

TEST(the_compute_path, is_watched_by_a_counter_that_counts) {
  const std::size_t before = allocations.load();
  const auto made = std::make_unique<int>(3);
  EXPECT_GT(allocations.load(), before);
}

}  // namespace
}  // namespace moetier::kernels
