#include "schemas/model/shared_experts_refusal.hpp"

#include <string>

#include <gtest/gtest.h>

#include "schemas/model/config.hpp"

namespace moetier {
namespace {

std::string refusal_of(const std::string& oracle) {
  const auto reading = read_config_and_form(std::string(MOETIER_SOURCE_DIR) +
                                            "/tests/data/oracles/" + oracle + "/config.json");
  return reading ? std::string(shared_experts_refusal(reading->model)) : reading.error().text;
}

TEST(shared_experts_refusal, tells_none_from_those_that_the_client_computes) {
  const std::string none = "the model has none; a dense block beside its experts is the client's";
  EXPECT_EQ(refusal_of("mixtral"), none);
  EXPECT_EQ(refusal_of("gemma4"), none);
  EXPECT_EQ(refusal_of("deepseek_v4_fp4"),
            "the client computes this model's: they are stored in another format than its routed "
            "experts");
  EXPECT_EQ(refusal_of("deepseek_v3"), "");
}

TEST(shared_experts_refusal, of_latent_experts_names_the_vector) {
  model_description model;
  model.hidden_size = 8;
  model.router_width = 16;
  model.shared.intermediate_size = 8;
  EXPECT_EQ(shared_experts_refusal(model),
            "the client computes this model's: they read the hidden vector, its routed experts a "
            "latent one");
}

}  // namespace
}  // namespace moetier
