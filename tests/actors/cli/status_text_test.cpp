#include "actors/cli/status_text.hpp"

#include <gtest/gtest.h>

namespace moetier::cli {
namespace {

std::string with_resolution(const std::string& resolution) {
  return status_text(
      R"({"epoch": 3, "generation": 2, "ready": true, "backend": "moetier.cpu.avx2.none",
          "carrier": "ucx", "model": {"type": "qwen3_moe", "experts": 8, "top_k": 2,
          "format": "mxfp4", "moe_layers": 4}, "resolution": )" +
      resolution + "}");
}

TEST(status_text, names_the_model_the_backend_and_the_carrier) {
  EXPECT_EQ(with_resolution(R"({"degraded": false, "describe": "all is well"})")
                .rfind("epoch 3  generation 2  ready\n"
                       "model qwen3_moe  8 experts, 2 a token, 4 MoE layers, format mxfp4\n"
                       "backend moetier.cpu.avx2.none  carrier ucx\n\n",
                       0),
            0u);
}

TEST(status_text, says_degraded_only_where_it_is) {
  EXPECT_NE(with_resolution(R"x({"degraded": true, "describe": "backend B (degraded from A)"})x")
                .find("\ndegraded: backend B (degraded from A)\n"),
            std::string::npos);
  EXPECT_EQ(with_resolution(R"({"degraded": false, "describe": "backend B"})").find("degraded"),
            std::string::npos);
}

TEST(status_text, of_a_tier_that_has_nothing_yet_says_why) {
  const std::string text =
      status_text(R"({"ready": false, "not_ready_reasons": ["1 of 2 workers joined"]})");
  EXPECT_EQ(text.rfind("epoch 0  generation 0  not ready\n  1 of 2 workers joined\n\n", 0), 0u)
      << text;
  EXPECT_EQ(status_text("[]"), "");
}

}  // namespace
}  // namespace moetier::cli
