#include "schemas/file/strict_json.hpp"

#include <cmath>

#include <nlohmann/json.hpp>

#include "tests/schemas/file/scratch_folder.hpp"

namespace moetier {
namespace {

using namespace std::string_view_literals;

std::string refusal(std::string_view text, const json_limits& limits = {}) {
  return sentence(parse_json(text, "a.json", limits));
}

TEST(strict_json, builds_the_document) {
  auto document = parse_json(R"({"a": [1, -2, 3.5, null, true, "x"], "b": {"a": {}}})", "a.json");
  ASSERT_TRUE(document) << sentence(document);
  EXPECT_EQ(document->dump(), R"({"a":[1,-2,3.5,null,true,"x"],"b":{"a":{}}})");
  EXPECT_EQ(parse_json("7", "a.json")->dump(), "7");
}

TEST(strict_json, refuses_a_doubled_key_however_it_is_spelt) {
  EXPECT_EQ(refusal(R"({"k": 1, "k": 2})"), R"(a.json is malformed: key "k" stands twice)");
  EXPECT_EQ(refusal(R"({"a": {"k": 1, "\u006b": 2}})"),
            R"(a.json is malformed: key "k" stands twice)");
  EXPECT_EQ(refusal(R"([{"k": 1}, {"k": 2}])"), "ok");
}

TEST(strict_json, bounds_nesting_and_values) {
  EXPECT_EQ(refusal("[[[]]]", {.depth_max = 3}), "ok");
  EXPECT_EQ(refusal("[[[[]]]]", {.depth_max = 3}), "a.json is malformed: it nests deeper than 3");
  EXPECT_EQ(refusal("[1, 2, 3]", {.values_max = 4}), "ok");
  EXPECT_EQ(refusal("[1, 2, 3, 4]", {.values_max = 4}),
            "a.json is malformed: it holds more than 4 values");
  EXPECT_EQ(refusal(std::string(1 << 20, '[')), "a.json is malformed: it nests deeper than 8");
}

TEST(strict_json, takes_numbers_that_are_not_finite_where_they_are_allowed) {
  const json_limits limits{.non_finite = true};
  const auto document =
      parse_json(R"({"NaN": "Infinity, NaN", "a": [0.0, Infinity,-Infinity, 0e0, 7], "b":NaN})",
                 "a.json", limits);
  ASSERT_TRUE(document) << sentence(document);
  EXPECT_EQ((*document)["NaN"], "Infinity, NaN");
  const auto& list = (*document)["a"];
  EXPECT_EQ(list[0], 0.0);
  EXPECT_EQ(list[1], INFINITY);
  EXPECT_EQ(list[2], -INFINITY);
  EXPECT_EQ(list[3], 0.0) << "what stands in a literal's place is no literal itself";
  EXPECT_EQ(list[4], 7);
  EXPECT_TRUE(std::isnan((*document)["b"].get<double>()));
  EXPECT_EQ(refusal("[1NaN]", limits), "a.json is malformed: no JSON at byte 3");
  EXPECT_EQ(refusal("[NaNs]", limits), "a.json is malformed: no JSON at byte 2");
  EXPECT_EQ(refusal("[NaN, x]", limits), "a.json is malformed: no JSON at byte 7");
  EXPECT_EQ(refusal("[+Infinity]", limits), "a.json is malformed: no JSON at byte 2");
  EXPECT_EQ(refusal("{NaN: 1}", limits), "a.json is malformed: no JSON at byte 2");
  EXPECT_EQ(refusal("{\"a\", NaN: 1}", limits), "a.json is malformed: no JSON at byte 5");
  EXPECT_EQ(refusal("\"NaN\\", limits), "a.json is malformed: no JSON at byte 6");
}

TEST(strict_json, refuses_what_is_no_json_by_its_place) {
  EXPECT_EQ(refusal(""), "a.json is malformed: no JSON at byte 1");
  EXPECT_EQ(refusal("{\"a\": 1}\0{"sv), "a.json is malformed: byte 8 is NUL");
  EXPECT_EQ(refusal("{\"a\": \"\xff\"}"), "a.json is malformed: no JSON at byte 8");
  EXPECT_EQ(refusal("{\"a\": \"\\ud800\"}"), "a.json is malformed: no JSON at byte 14");
  EXPECT_EQ(refusal("{} {}"), "a.json is malformed: no JSON at byte 4");
  EXPECT_EQ(refusal("// x\n{}"), "a.json is malformed: no JSON at byte 1");
  EXPECT_EQ(refusal("1e999"), "a.json is malformed: no JSON at byte 5");
  EXPECT_EQ(refusal("NaN"), "a.json is malformed: no JSON at byte 1");
}

}  // namespace
}  // namespace moetier
