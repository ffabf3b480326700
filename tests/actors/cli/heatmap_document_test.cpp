#include "actors/cli/heatmap_document.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace moetier::cli {
namespace {

constexpr const char* k_experts = R"({"schema":"moetier.experts/1","epoch":4,"generation":1,
  "workers":["worker@1","worker@2"],"layers":[
  {"layer":1,"rows":100,"balancedness":0.5,"experts":[
    {"expert":7,"rows":80,"replicas":[{"worker":0,"slot":2,"rows":50},{"worker":1,"slot":0,"rows":30}]},
    {"expert":0,"rows":20,"replicas":[{"worker":1,"slot":3,"rows":20}]},
    {"expert":1,"rows":0,"replicas":[{"worker":0,"slot":0,"rows":0}]}]},
  {"layer":3,"rows":0,"balancedness":0.0,"experts":[{"expert":0,"rows":0,"replicas":[]}]}]})";

TEST(heatmap, names_the_hottest_experts_of_a_layer_and_where_they_lie) {
  const auto map = heatmap_of(k_experts, {.layer = 1, .top = 2});
  ASSERT_TRUE(map) << map.error().text;
  EXPECT_EQ(map->dump(),
            R"({"schema":"moetier.heatmap/1","epoch":4,"generation":1,"layers":[{"layer":1,)"
            R"("rows":100,"balancedness":0.5,"experts":[{"expert":7,"rows":80,"share":0.8,)"
            R"("replicas":[{"worker":"worker@1","slot":2,"rows":50},)"
            R"({"worker":"worker@2","slot":0,"rows":30}]},{"expert":0,"rows":20,"share":0.2,)"
            R"("replicas":[{"worker":"worker@2","slot":3,"rows":20}]}]}]})");
  EXPECT_EQ(heatmap_text(*map),
            "rows in generation 1\n"
            "\n"
            "layer 1  100 rows  balance 0.50\n"
            "expert  rows  share                            replicas\n"
            "     7    80  80.0%  ########################  worker@1:2 50, worker@2:0 30\n"
            "     0    20  20.0%  ######                    worker@2:3 20\n");
}

TEST(heatmap, has_every_layer_unless_one_is_named) {
  const auto map = heatmap_of(k_experts, {});
  ASSERT_TRUE(map);
  EXPECT_EQ(map->at("layers").size(), 2u);
  EXPECT_EQ(map->at("layers")[1]["experts"][0]["share"], 0.0);
}

TEST(heatmap, of_a_layer_that_is_not_served_names_those_that_are) {
  const auto map = heatmap_of(k_experts, {.layer = 2});
  ASSERT_FALSE(map);
  EXPECT_EQ(map.error().why, reason::unknown_layer);
  EXPECT_NE(map.error().text.find("1, 3"), std::string::npos) << map.error().text;
}

TEST(heatmap, of_a_tier_without_a_plan_or_of_another_document_is_refused) {
  const auto early = heatmap_of(R"({"epoch":1,"generation":0,"workers":[],"layers":[]})", {});
  ASSERT_FALSE(early);
  EXPECT_EQ(early.error().why, reason::not_ready);
  for (const char* other : {"", "[]", "{}", R"({"layers":[{}]})", R"({"layers":7})"}) {
    const auto map = heatmap_of(other, {});
    ASSERT_FALSE(map) << other;
  }
}

}  // namespace
}  // namespace moetier::cli
