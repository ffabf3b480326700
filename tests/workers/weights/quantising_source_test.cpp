#include "workers/weights/quantising_source.hpp"

#include <cmath>

#include "tests/workers/weights/naive_expert.hpp"
#include "tests/workers/weights/raw_checkpoint.hpp"

namespace moetier::workers {
namespace {

model_description description(std::uint32_t hidden = 256, std::uint32_t inner = 128) {
  model_description model;
  model.model_type = "qwen3_moe";
  model.hidden_size = model.router_width = hidden;
  model.intermediate_size = inner;
  model.experts = 2;
  model.top_k = 1;
  model.layers_total = 1;
  model.moe_layers = {layer_id(0)};
  model.routing.method = routing_method::renormalize;
  model.format.stored = dtype::f32;
  return model;
}

// Weights around 1 that differ by expert and place.
class wave_source final : public expert_source {
 public:
  expected<void> load(layer_id, expert_id expert, const expert_buffers& into) override {
    if (fails) return fail(reason::file_unreadable, "shard", "it broke");
    for (const auto& part : {into.gate, into.up, into.down}) {
      for (std::size_t n = 0; n < part.size() / sizeof(float); ++n) {
        float value = std::sin(static_cast<float>(n) + static_cast<float>(expert.value));
        if (n == 5 && spoiled) value = INFINITY;
        std::memcpy(part.data() + n * sizeof(float), &value, sizeof(value));
      }
    }
    return {};
  }
  bool spoiled = false;
  bool fails = false;
};

TEST(quantising_source, gives_every_format_close_to_the_original_and_tells_the_error) {
  const model_description model = description();
  wave_source source;
  const auto original = naive_expert::load(source, model, layer_id(0), 1);
  ASSERT_TRUE(original);
  const std::vector<std::pair<quant_kind, double>> bounds{
      {quant_kind::fp8_tensor, 0.04}, {quant_kind::fp8_block, 0.04}, {quant_kind::mxfp8, 0.04},
      {quant_kind::mxfp4, 0.2},       {quant_kind::nvfp4, 0.15},     {quant_kind::int4_g128, 0.15}};
  for (const auto& [quant, bound] : bounds) {
    auto made = quantising_source::create(source, model, quant);
    ASSERT_TRUE(made) << sentence(made);
    quantising_source& to = **made;
    EXPECT_EQ(to.model().format.quant, quant);
    EXPECT_EQ(to.model().fingerprint, fingerprint_of(to.model()));
    EXPECT_EQ(to.error().matrices, 0u);
    const auto stored = naive_expert::load(to, to.model(), layer_id(0), 1);
    ASSERT_TRUE(stored) << sentence(stored);
    double squares = 0;
    double given = 0;
    double most = 0;
    for (std::size_t n = 0; n < original->w3.size(); ++n) {
      const double off = stored->w3[n] - original->w3[n];
      squares += off * off;
      given += original->w3[n] * original->w3[n];
      most = std::max(most, std::abs(off));
    }
    const double rms = std::sqrt(squares / given);
    EXPECT_LT(rms, bound) << quant_name(quant);
    EXPECT_GT(rms, 1e-4) << quant_name(quant) << " is no copy";
    const quantising_error told = to.error();
    EXPECT_EQ(told.matrices, 3u);
    // gate, up and down hold the same numbers in this source; down in another shape.
    EXPECT_GE(told.max_abs, most * (1 - 1e-6)) << quant_name(quant);
    EXPECT_GE(told.rms_relative_max, rms * (1 - 1e-6)) << quant_name(quant);
    EXPECT_LE(told.rms_relative_mean, told.rms_relative_max);
    EXPECT_LT(told.rms_relative_max, bound);
  }
}

TEST(quantising_source, passes_through_where_nothing_is_to_be_done) {
  const model_description model = description();
  wave_source source;
  auto to = quantising_source::create(source, model, quant_kind::none);
  ASSERT_TRUE(to);
  EXPECT_EQ((*to)->model(), model);
  const auto original = naive_expert::load(source, model, layer_id(0), 0);
  const auto same = naive_expert::load(**to, model, layer_id(0), 0);
  EXPECT_EQ(original->up, same->up);
  EXPECT_EQ((*to)->error().matrices, 0u);
}

TEST(quantising_source, keeps_biases_and_shared_experts_of_real_models) {
  const std::string oracles = std::string(MOETIER_SOURCE_DIR) + "/tests/data/oracles/";
  for (const char* family : {"gpt_oss", "dots1", "nemotron_h"}) {
    auto weights = checkpoint::open(oracles + family);
    ASSERT_TRUE(weights) << sentence(weights);
    const model_description& model = (*weights)->model();
    auto to = quantising_source::create(**weights, model, quant_kind::fp8_tensor);
    ASSERT_TRUE(to) << sentence(to);
    const layer_id layer = model.moe_layers.front();
    for (std::uint32_t e = 0; e < model.experts + model.shared.count; ++e) {
      const auto plain = naive_expert::load(**weights, model, layer, e);
      const auto stored = naive_expert::load(**to, (*to)->model(), layer, e);
      ASSERT_TRUE(plain && stored) << sentence(stored);
      EXPECT_EQ(plain->gate_bias, stored->gate_bias);
      EXPECT_EQ(plain->down_bias, stored->down_bias);
      EXPECT_EQ(plain->w1.size(), stored->w1.size());
    }
    EXPECT_LT((*to)->error().rms_relative_max, 0.04);
  }
}

TEST(quantising_source, refuses_what_cannot_be_quantised) {
  wave_source source;
  model_description model = description();
  model.format.quant = quant_kind::fp8_block;
  EXPECT_EQ(sentence(quantising_source::create(source, model, quant_kind::nvfp4)),
            "model field quantization_config is fp8_block; supported: an unquantised model where "
            "weights are quantised at load");
  EXPECT_EQ(
      sentence(quantising_source::create(source, description(256, 96), quant_kind::int4_g128)),
      "model field intermediate_size is 96; supported: multiples of 128 for int4_g128");
  auto to = quantising_source::create(source, description(), quant_kind::nvfp4);
  ASSERT_TRUE(to);
  source.spoiled = true;
  EXPECT_EQ(sentence(naive_expert::load(**to, (*to)->model(), layer_id(0), 1)),
            "weights: layer 0 expert 1 projection gate: found a weight that is not finite, "
            "expected weights that "
            "can be quantised");
  source.fails = true;
  EXPECT_EQ(sentence(naive_expert::load(**to, (*to)->model(), layer_id(0), 1)),
            "cannot read shard: it broke");
}

}  // namespace
}  // namespace moetier::workers
