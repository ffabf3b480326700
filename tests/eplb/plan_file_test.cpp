#include "eplb/plan_file.hpp"

#include <gtest/gtest.h>

#include "tests/eplb/small_placement.hpp"

namespace moetier::eplb {
namespace {

constexpr const char* k_good = R"({"format":1,"experts":3,"slots_per_worker":[2,2],
  "layers":[{"layer":0,"slots":[0,1,2,0]},{"layer":1,"slots":[0,1,2,1]}]})";

std::string verdict(std::string text) {
  const auto p = placement_from_json(text, "plan.json", 3, layers_of(2), spans_of({2, 2}), 7);
  return p ? "accepted" : p.error().text;
}

std::string with(const std::string& from, const std::string& to) {
  std::string text = k_good;
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos);
  return text.replace(at, from.size(), to);
}

TEST(plan_file, reads_a_placement_and_writes_it_back) {
  const auto p = placement_from_json(k_good, "plan.json", 3, layers_of(2), spans_of({2, 2}), 7);
  ASSERT_TRUE(p.has_value()) << p.error().text;
  EXPECT_EQ(p->layers()[1].experts, (std::vector<std::int32_t>{0, 1, 2, 1}));
  const shares s = shares::even(*p, {true, true}, {});
  const std::string text = placement_to_json(*p, s, 7, plan_hash{0x1234});
  const auto again = placement_from_json(text, "plan.json", 3, layers_of(2), spans_of({2, 2}), 7);
  ASSERT_TRUE(again.has_value()) << again.error().text;
  EXPECT_EQ(*again, *p);
  EXPECT_EQ(*slots_per_worker_of(text, "plan.json"), (std::vector<std::uint32_t>{2, 2}));
}

TEST(plan_file, names_the_place_of_each_error) {
  EXPECT_EQ(verdict(with("\"format\":1", "\"format\":2")),
            "plan.json is malformed: the plan needs format, an integer from 1 to 1");
  EXPECT_EQ(verdict(with("\"experts\":3", "\"expert\":3")),
            "plan.json is malformed: unknown key expert in the plan");
  EXPECT_EQ(verdict(with("\"slots\":[0,1,2,1]", "\"slots\":[0,1,2]")),
            "plan.json is malformed: layers entry 1 slots has 3 entries; expected 4");
  EXPECT_EQ(verdict(with("\"slots\":[0,1,2,1]", "\"slots\":[0,1,9,1]")),
            "plan.json is malformed: layers entry 1 slots entry 2 must be an integer from -1 to 2");
  EXPECT_EQ(verdict(with("\"slots\":[0,1,2,1]", "\"slots\":[0,1,0,1]")),
            "placement: layer 1 has no slot for expert 2");
  EXPECT_EQ(verdict(with("[2,2]", "[2,3]")),
            "plan.json is malformed: slots_per_worker entry 1 is 3; worker 1 has 2");
  EXPECT_EQ(verdict(with("\"layer\":1", "\"layer\":2")),
            "plan.json is malformed: layers entry 1 needs layer, an integer from 1 to 1");
  EXPECT_EQ(verdict(with("\"experts\":3", "\"experts\":3,\"fingerprint\":\"0000000000000008\"")),
            "plan.json is malformed: the plan's fingerprint is not this model's 0000000000000007");
  EXPECT_NE(verdict("{"), "accepted");
  EXPECT_NE(verdict("[]"), "accepted");
}

}  // namespace
}  // namespace moetier::eplb
