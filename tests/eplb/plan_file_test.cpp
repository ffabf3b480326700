#include "eplb/plan_file.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "tests/eplb/small_placement.hpp"

namespace moetier::eplb {
namespace {

constexpr const char* k_good = R"({"format":1,"experts":3,"slots_per_worker":[2,2],
  "layers":[{"layer":0,"slots":[0,1,2,0]},{"layer":1,"slots":[0,1,2,1]}]})";

expected<placed_plan> placed_from(std::string_view text) {
  const auto layers = layers_of(2);
  const auto spans = spans_of({2, 2});
  return read_placed_plan(text, "plan.json", {3, layers, spans, 7});
}

std::string verdict(std::string text) {
  const auto p = placed_from(text);
  return p ? "accepted" : p.error().text;
}

std::string with(const std::string& from, const std::string& to) {
  std::string text = k_good;
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos);
  return text.replace(at, from.size(), to);
}

TEST(plan_file, reads_a_placement_and_writes_it_back) {
  const auto p = placed_from(k_good);
  ASSERT_TRUE(p.has_value()) << p.error().text;
  EXPECT_EQ(p->placed.layers()[1].experts, (std::vector<std::int32_t>{0, 1, 2, 1}));
  const shares s = shares::even(p->placed, {true, true}, {});
  const std::string text = placement_to_json(p->placed, s, 7, plan_hash{0x1234});
  const auto again = placed_from(text);
  ASSERT_TRUE(again.has_value()) << again.error().text;
  EXPECT_EQ(again->placed, p->placed);
  EXPECT_EQ(again->units[0], (std::vector<std::uint32_t>{32768, 65536, 65536, 32768}));
  EXPECT_EQ(*slots_per_worker_of(text, "plan.json"), (std::vector<std::uint32_t>{2, 2}));
}

plan_file planned() {
  return {{3,
           {2, 2},
           {{layer_id{3}, {0, 1, 2, 0}, {40000, 65536, 65536, 25536}},
            {layer_id{7}, {0, 1, 2, -1}, {}}}},
          0x12,
          {{layer_id{3}, 3, 0, 1}}};
}

TEST(plan_file, keeps_shares_moves_and_fingerprint) {
  const std::string text = plan_file_text(planned());
  const auto again = read_plan_file(text, "plan.json");
  ASSERT_TRUE(again.has_value()) << again.error().text;
  EXPECT_EQ(*again, planned());
  EXPECT_EQ(plan_file_text(*again), text);
}

std::string alone(const std::string& from, const std::string& to) {
  std::string text = plan_file_text(planned());
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
  if (from.find("checksum") == std::string::npos) {
    // As by hand: without the key.
    const auto sum = text.find(",\"checksum\"");
    text.erase(sum, text.find('}', sum) - sum);
  }
  const auto f = read_plan_file(text, "plan.json");
  return f ? "accepted" : f.error().text;
}

TEST(plan_file, names_the_place_of_each_error_without_a_tier) {
  const std::string malformed = "plan.json is malformed: ";
  EXPECT_EQ(alone("{", "{"), "accepted");
  EXPECT_EQ(alone("\"checksum\":\"", "\"checksum\":\"x"),
            malformed + "checksum must be 16 hexadecimal digits in quotes");
  EXPECT_EQ(alone("[40000,65536", "[40001,65536"),
            malformed + "placement: layer 3 expert 0: shares sum to 65537; they must sum to 65536");
  EXPECT_EQ(alone("[40000,65536,65536,25536]", "[40000,65536]"),
            malformed + "layers entry 0 shares has 2 entries; expected 4");
  EXPECT_EQ(alone("\"layer\":7", "\"layer\":3"),
            malformed + "placement: layer 3 follows layer 3; layers must rise");
  EXPECT_EQ(alone("[0,1,2,-1]", "[0,1,0,-1]"),
            malformed + "placement: layer 7 has no slot for expert 2");
  EXPECT_EQ(alone("\"slot\":3", "\"slot\":4"),
            malformed + "moves entry 0 needs slot, an integer from 0 to 3");
  EXPECT_EQ(
      alone("\"expert\":0", "\"expert\":2"),
      malformed + "moves entry 0 brings expert 2 to layer 3 slot 3, where the plan has another");
  EXPECT_EQ(alone("\"replaced\":1", "\"replaced\":18446744073709551615"),
            malformed + "moves entry 0 needs replaced, an integer from -1 to 2");
  EXPECT_EQ(alone("\"replaced\":1", "\"replaced\":1,\"why\":0"),
            malformed + "unknown key why in moves entry 0");
  EXPECT_EQ(alone("\"fingerprint\":\"0000000000000012\"", "\"fingerprint\":18"),
            malformed + "fingerprint must be 16 hexadecimal digits in quotes");
  EXPECT_EQ(alone("\"layers\":[", "\"moves\":["), malformed + "key \"moves\" stands twice");
}

TEST(plan_file, sees_by_its_checksum_what_is_still_a_plan_but_another) {
  std::string text = plan_file_text(planned());
  const auto at = text.find("[40000,65536,65536,25536]");
  ASSERT_NE(at, std::string::npos);
  std::string replaced = text;
  replaced.replace(replaced.find("\"replaced\":1"), 12, "\"replaced\":2");
  EXPECT_FALSE(read_plan_file(replaced, "plan.json").has_value());
  text.replace(at, 6, "[40001");
  text.replace(text.find("25536]"), 6, "25535]");
  const auto f = read_plan_file(text, "plan.json");
  ASSERT_FALSE(f.has_value());
  EXPECT_EQ(
      f.error().text,
      "plan.json is malformed: its checksum is not of what it says; after an edit by hand drop "
      "the key checksum");
}

// Whatever happens to the bytes: refused with a reason, or the same plan.
TEST(plan_file, refuses_every_mutation_or_reads_the_same_plan) {
  const int rounds = std::getenv("MOETIER_FULL") == nullptr ? 4000 : 400'000;
  const std::string good = plan_file_text(planned());
  std::mt19937_64 random(5);
  int same = 0;
  for (int i = 0; i < rounds; ++i) {
    std::string text = good;
    for (std::uint64_t n = 1 + random() % 3; n > 0; --n) {
      const std::size_t at = random() % text.size();
      const std::size_t length = std::min<std::size_t>(1 + random() % 8, text.size() - at);
      switch (random() % 5) {
        case 0: text[at] = static_cast<char>(random()); break;
        case 1: text[at] = static_cast<char>('0' + random() % 10); break;
        case 2: text.erase(at, length); break;
        case 3: text.insert(at, text.substr(random() % text.size(), length)); break;
        default: text.insert(at, 1, ' '); break;
      }
      if (text.empty()) text.assign(1, ' ');
    }
    const auto f = read_plan_file(text, "plan.json");
    if (!f) {
      EXPECT_FALSE(f.error().text.empty());
      continue;
    }
    // Without the checksum any other plan would do; the mutation may have taken it away.
    if (text.find("checksum") != std::string::npos) {
      EXPECT_EQ(f->draft, planned().draft) << text;
    }
    ++same;
  }
  EXPECT_GT(same, 0);  // blanks between tokens
  EXPECT_LT(same, rounds / 3);
}

TEST(plan_file, names_the_place_of_each_error) {
  EXPECT_EQ(verdict(with("\"format\":1", "\"schema\":\"moetier.plan_file/1\"")), "accepted");
  for (const char* other : {"\"schema\":\"moetier.plan/1\"", "\"schema\":1",
                            "\"schema\":\"moetier.plan_file/2\",\"format\":1"}) {
    EXPECT_EQ(verdict(with("\"format\":1", other)),
              "plan.json is malformed: its schema is not moetier.plan_file/1");
  }
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
