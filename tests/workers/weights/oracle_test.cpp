// Every family's checkpoint, end to end: config.json and the files' tensors through the product,
// then a plain double-precision layer over the canonical bytes must give the outputs that another
// library computed. A swapped gate and up, a missing transposition, a wrong scale, a dropped shared
// expert or a wrong clamp does not survive this.

#include <map>

#include "kernels/routing/route.hpp"
#include "tests/workers/weights/oracle_fixture.hpp"

namespace moetier::workers {
namespace {

class oracle_test : public oracle_fixture {
 protected:
  std::vector<double> routed(layer_id layer) {
    std::vector<naive_expert> experts;
    for (std::uint32_t e = 0; e < model().experts; ++e) {
      auto loaded = naive_expert::load(*weights_, model(), layer, e);
      EXPECT_TRUE(loaded) << sentence(loaded);
      if (!loaded) return {};
      experts.push_back(std::move(*loaded));
    }
    const std::vector<double> input = expert_rows(layer);
    const auto [ids, weights] = choices(layer);
    std::vector<double> all;
    for (std::size_t row = 0; row < k_rows; ++row) {
      std::vector<double> x(row_of(input, row).begin(), row_of(input, row).end());
      std::vector<double> sum(x.size(), 0.0);
      for (std::size_t j = 0; j < row_of(ids, row).size(); ++j) {
        const auto e = static_cast<std::size_t>(row_of(ids, row)[j]);
        double w = row_of(weights, row)[j];
        if (model().weight_at == weight_point::input) {
          for (double& v : x) v *= w;
          w = 1;
        }
        const std::vector<double> y = e < experts.size() ? experts[e](x) : x;
        for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += w * y[i];
      }
      all.insert(all.end(), sum.begin(), sum.end());
    }
    return all;
  }

  void add_shared(layer_id layer, std::vector<double>& rows) {
    const auto tables = weights_->read_routing_tables();
    ASSERT_TRUE(tables) << sentence(tables);
    const auto& gate =
        tables->layers[static_cast<std::size_t>(moe_index(model(), layer))].shared_gate;
    EXPECT_EQ(gate.empty(), !model().shared.gated);
    const std::vector<double> hidden = values(layer, "hidden");
    for (std::uint32_t s = 0; s < model().shared.count; ++s) {
      auto expert = naive_expert::load(*weights_, model(), layer, model().experts + s);
      ASSERT_TRUE(expert) << sentence(expert);
      for (std::size_t row = 0; row < k_rows; ++row) {
        const auto x = row_of(hidden, row);
        const double w =
            gate.empty() ? 1.0
                         : naive_sigmoid(std::inner_product(x.begin(), x.end(), gate.begin(), 0.0));
        const auto y = (*expert)(x);
        for (std::size_t i = 0; i < y.size(); ++i) rows[row * y.size() + i] += w * y[i];
      }
    }
  }
};

TEST_P(oracle_test, the_experts_give_the_librarys_outputs) {
  ASSERT_TRUE(weights_);
  for (const layer_id layer : model().moe_layers) {
    std::vector<double> got = routed(layer);
    ASSERT_FALSE(wanted(layer).empty());
    EXPECT_LE(difference(got, wanted(layer)), 1e-5) << "layer " << layer.value;
    if (model().shared.count == 0) continue;
    add_shared(layer, got);
    EXPECT_LE(difference(got, wanted_block(layer)), 1e-5)
        << "with shared experts, layer " << layer.value;
  }
}

TEST_P(oracle_test, the_router_gives_the_librarys_logits) {
  ASSERT_TRUE(weights_);
  for (const layer_id layer : model().moe_layers) {
    const auto router = weights_->read_router(layer);
    ASSERT_TRUE(router) << sentence(router);
    if (!model().router_reads_hidden) continue;
    std::vector<double> matrix(router->bytes.size() / dtype_bytes(router->element));
    for (std::size_t i = 0; i < matrix.size(); ++i)
      matrix[i] = naive_float(router->bytes, i, router->element);
    const std::vector<double> hidden = values(layer, "hidden");
    std::vector<double> got;
    for (std::size_t row = 0; row < k_rows; ++row) {
      std::vector<double> line = naive_product(matrix, row_of(hidden, row));
      for (std::size_t e = 0; e < router->bias.size(); ++e) line[e] += router->bias[e];
      got.insert(got.end(), line.begin(), line.end());
    }
    EXPECT_LE(difference(got, values(layer, "logits")), 1e-5) << "layer " << layer.value;
  }
}

// Description and tables together say which experts the library chose, and how they weigh.
TEST_P(oracle_test, the_routing_gives_the_librarys_choices) {
  ASSERT_TRUE(weights_);
  const auto tables = weights_->read_routing_tables();
  ASSERT_TRUE(tables) << sentence(tables);
  const kernels::routing_params params{
      .rule = model().routing, .experts = model().experts, .top_k = model().top_k};
  for (const layer_id layer : model().moe_layers) {
    const std::vector<double> logits = values(layer, "logits");
    const std::vector<double> ids = values(layer, "ids");
    const std::vector<double> weights = values(layer, "weights");
    if (ids.empty()) continue;
    const layer_routing& routing =
        tables->layers[static_cast<std::size_t>(moe_index(model(), layer))];
    const auto fine = kernels::check_layer(params, routing);
    ASSERT_TRUE(fine) << sentence(fine);
    const std::vector<double> tokens = values(layer, "token_ids");
    EXPECT_EQ(routing.hashed(), !tokens.empty());
    const std::vector<std::int32_t> token_ids(tokens.begin(), tokens.end());
    const std::vector<float> narrow(logits.begin(), logits.end());
    std::vector<std::int32_t> got_ids(ids.size());
    std::vector<float> got_weights(ids.size());
    const auto done = kernels::route(params, routing,
                                     {.logits = narrow.data(),
                                      .pitch_bytes = model().columns() * sizeof(float),
                                      .tokens = k_rows,
                                      .token_ids = token_ids,
                                      .layer = layer.value},
                                     got_ids, got_weights);
    ASSERT_TRUE(done) << sentence(done);
    for (std::size_t row = 0; row < k_rows; ++row) {
      std::map<int, double> got;
      std::map<int, double> wanted;
      for (std::size_t n = row * params.top_k; n < (row + 1) * params.top_k; ++n) {
        got[got_ids[n]] = static_cast<double>(got_weights[n]);
        wanted[static_cast<int>(ids[n])] = weights[n];
      }
      for (const auto& [expert, weight] : wanted) {
        ASSERT_TRUE(got.contains(expert)) << "layer " << layer.value << " row " << row;
        EXPECT_NEAR(got[expert], weight, 1e-5 * std::max(1.0, std::abs(weight)))
            << "layer " << layer.value << " row " << row;
      }
    }
  }
}

TEST_P(oracle_test, shared_experts_are_held_or_refused_with_a_reason) {
  ASSERT_TRUE(weights_);
  const std::map<std::string, std::string> refused{
      {"deepseek_v4_fp4", "they are fp8_block where the routed experts are mxfp4"},
      {"nemotron_h_latent",
       "they read the hidden vector where the routed experts read a latent one"}};
  const auto at = refused.find(GetParam());
  EXPECT_EQ(weights_->shared_refusal(), at == refused.end() ? "" : at->second);
  const bool held = model().shared.intermediate_size > 0 && at == refused.end();
  EXPECT_EQ(model().shared.count > 0, held);
}

INSTANTIATE_TEST_SUITE_P(families, oracle_test, testing::ValuesIn(oracle_names()),
                         [](const auto& family) { return family.param; });

TEST(oracles, all_are_here) { EXPECT_EQ(oracle_names().size(), 47u); }

}  // namespace
}  // namespace moetier::workers
