#include "eplb/assignment_file.hpp"

#include <gtest/gtest.h>

namespace moetier::eplb {
namespace {

constexpr const char* k_good = R"({"num_slots": 4, "layer_updates_per_iter": 0,
  "initial_global_assignments": {"10": [0, 1, 2, 0], "9": [2, 1, 0, 1]}})";

std::string verdict(const std::string& from, const std::string& to, std::uint32_t experts = 3) {
  std::string text = k_good;
  text.replace(text.find(from), from.size(), to);
  const auto d = read_assignment_file(text, "a.json", 2, experts);
  return d ? "accepted" : d.error().text;
}

TEST(assignment_file, reads_layers_by_number_and_writes_them_back) {
  EXPECT_TRUE(is_assignment_file(k_good));
  const auto d = read_assignment_file(k_good, "a.json", 2, 0);
  ASSERT_TRUE(d.has_value()) << d.error().text;
  EXPECT_EQ(d->experts, 3U);
  EXPECT_EQ(d->layers[0].layer, layer_id{9});
  EXPECT_EQ(d->layers[1].slots, (std::vector<std::int32_t>{0, 1, 2, 0}));
  EXPECT_EQ(d->slots_per_worker, (std::vector<std::uint32_t>{2, 2}));
  const auto text = write_assignment_file(*d);
  ASSERT_TRUE(text.has_value());
  EXPECT_FALSE(text->shares_lost);
  EXPECT_EQ(*read_assignment_file(text->text, "a.json", 2, 0), *d);
}

TEST(assignment_file, says_when_shares_are_lost_and_refuses_empty_slots) {
  plan_draft d = *read_assignment_file(k_good, "a.json", 2, 0);
  d.layers[1].units = {32768, 65536, 65536, 32768};
  EXPECT_FALSE(write_assignment_file(d)->shares_lost);
  d.layers[1].units.clear();
  d.layers[0].units = {65536, 32769, 65536, 32767};
  EXPECT_TRUE(write_assignment_file(d)->shares_lost);
  d.layers[0].slots[3] = -1;
  EXPECT_EQ(write_assignment_file(d).error().text,
            "placement: layer 9 slot 3 is empty, which initial_global_assignments cannot say");
}

TEST(assignment_file, names_the_place_of_each_error) {
  const std::string malformed = "a.json is malformed: ";
  EXPECT_EQ(verdict("4,", "5,"), malformed + "layer 10 lists 4 slots; num_slots is 5");
  EXPECT_EQ(verdict("_iter\": 0", "_iter\": 2"),
            malformed + "layer_updates_per_iter must be 0: only static assignments are taken");
  EXPECT_EQ(verdict("num_slots", "num_slot"), malformed + "unknown key num_slot");
  EXPECT_EQ(verdict("[0, 1, 2, 0]", "[0, 1, 1, 0]"),
            malformed + "placement: layer 10 has no slot for expert 2");
  EXPECT_EQ(verdict("[0, 1, 2, 0]", "[0, 0, 2, 1]"),
            malformed + "placement: layer 10 worker 0 holds expert 0 twice");
  EXPECT_EQ(verdict("[0, 1, 2, 0]", "[0, 1, -2, 0]"),
            malformed + "layer 10 slot 2 must be an expert from 0 to 4095");
  EXPECT_EQ(verdict("\"9\"", "\"x\""), malformed + "x is no layer");
  EXPECT_EQ(verdict("\"9\"", "\"010\""), malformed + "layer 10 stands twice");
  EXPECT_EQ(verdict("4,", "0,"),
            malformed + "placement: worker 0 has 0 slots per layer; 1 to 1024 are allowed");
  EXPECT_EQ(verdict("9", "9", 4), malformed + "placement: layer 9 has no slot for expert 3");
}

}  // namespace
}  // namespace moetier::eplb
