#include "actors/cli/plan_loads.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "schemas/safetensors/tensor_writer.hpp"

namespace moetier::cli {
namespace {

using counts = std::vector<std::vector<std::uint64_t>>;

std::string csv_refusal(const std::string& text, std::uint32_t experts = 0) {
  const auto read = loads_from_csv(text, "l.csv", experts);
  return read ? "read" : read.error().text;
}

TEST(plan_loads, csv_sums_the_rows_of_a_layer) {
  const auto read = loads_from_csv("layer,e0,e1\n 4, 1,2\r\n\n3,5,6\n4,10,20", "l.csv", 0);
  ASSERT_TRUE(read.has_value()) << read.error().text;
  EXPECT_EQ(read->loads.layers, (std::vector<layer_id>{layer_id{3}, layer_id{4}}));
  EXPECT_EQ(read->loads.counts, (counts{{5, 6}, {11, 22}}));
  EXPECT_EQ(read->loads.experts, 2U);
  // Spreadsheets write a mark and quotes.
  EXPECT_EQ(loads_from_csv("\xef\xbb\xbf\"layer\",\"e0\"\n0,7\n", "l.csv", 0)->loads.counts,
            (counts{{7}}));
}

TEST(plan_loads, csv_errors_name_line_and_expert) {
  const std::string malformed = "l.csv is malformed: ";
  EXPECT_EQ(csv_refusal("layer,e0,e1\n0,1,2\n1,1.5,2\n"),
            malformed + "line 3, expert 0: 1.5 is no whole number");
  EXPECT_EQ(csv_refusal("layer,e0,e1\n0,1,\n"),
            malformed + "line 2, expert 1: nothing is no whole number");
  EXPECT_EQ(csv_refusal("layer,e0,e1\n0,-1,2\n"),
            malformed + "line 2, expert 0: -1 is no whole number");
  EXPECT_EQ(csv_refusal("layer,e0,e1\n0,1\n"),
            malformed + "line 2 has 1 numbers after the layer; 2 are expected");
  EXPECT_EQ(csv_refusal("layer,e0,e1\n0,\"1,200\",2\n"),
            malformed +
                "line 2 has 3 numbers after the layer; 2 are expected; a comma parts "
                "numbers inside quotes too");
  EXPECT_EQ(csv_refusal("layer,e0,\n0,1,\n"),
            malformed + "line 1, column 3 is headed nothing; e1 is expected");
  EXPECT_EQ(csv_refusal("10,20,30\n5,5,5\n"),
            malformed + "line 1 begins with 10; the head layer,e0,e1,... is needed");
  EXPECT_EQ(csv_refusal("layer;e0;e1\n0;1;2\n"),
            malformed + "line 1 begins with layer;e0;e1; the head layer,e0,e1,... is needed");
  EXPECT_EQ(csv_refusal("layer,e1,e0\n0,1,2\n"),
            malformed + "line 1, column 2 is headed e1; e0 is expected");
  EXPECT_EQ(csv_refusal("layer,e0,e1\n0,1,2\n", 3),
            malformed + "line 1 names 2 experts; 3 are expected");
  EXPECT_EQ(csv_refusal("layer,e0\nx,1\n"),
            malformed + "line 2 begins with x; a layer's number is needed");
  EXPECT_EQ(csv_refusal("layer,e0\n0,18446744073709551615\n0,1\n"),
            malformed + "line 3, expert 0: the sum is beyond 64 bits");
  EXPECT_EQ(csv_refusal("layer,e0\n65536,1\n"), malformed + "line 2: layer 65536 is above 65535");
  EXPECT_EQ(csv_refusal("layer,e0\n"), malformed + "it has no row of loads");
  EXPECT_EQ(csv_refusal(""), malformed + "it has no row of loads");
  EXPECT_EQ(csv_refusal("layer\n"), malformed + "line 1 names 0 experts; 1 to 4096 are expected");
}

struct safetensors {
  std::string path = testing::TempDir() + "plan_loads_test.safetensors";

  template <class Integer>
  void write(dtype type, std::vector<std::pair<std::string, std::vector<std::uint64_t>>> shapes,
             const std::vector<Integer>& numbers,
             std::vector<std::pair<std::string, std::string>> metadata = {}) {
    std::vector<tensor_to_write> tensors;
    for (const auto& [name, shape] : shapes)
      tensors.push_back({name, type, shape, std::as_bytes(std::span(numbers))});
    const auto written = write_tensors(path, tensors, metadata);
    ASSERT_TRUE(written.has_value()) << written.error().text;
  }
  ~safetensors() { std::filesystem::remove(path); }
};

TEST(plan_loads, counts_of_any_order_and_type_are_summed) {
  safetensors f;
  f.write<std::int64_t>(dtype::i64, {{"a", {2, 3}}, {"b", {2, 3}}}, {1, 2, 3, 4, 5, 6},
                        {{"layer_ids", "[3, 9]"}, {"num_experts", "3"}, {"top_k", "2"}});
  auto read = loads_from_counts({.counts = f.path});
  ASSERT_TRUE(read.has_value()) << read.error().text;
  EXPECT_EQ(read->loads.counts, (counts{{2, 4, 6}, {8, 10, 12}}));
  EXPECT_EQ(read->loads.layers[1], layer_id{9});
  EXPECT_TRUE(read->told.ends_with("2 tensor(s), 2 layers, 3 experts, 2 a token")) << read->told;
  EXPECT_EQ(loads_from_counts({.counts = f.path, .tensor = "b"})->loads.counts[0][2], 3U);

  f.write<std::uint8_t>(dtype::u8, {{"domain", {2, 2, 2}}}, {1, 2, 3, 4, 5, 6, 7, 8});
  read = loads_from_counts({.counts = f.path});
  EXPECT_EQ(read->loads.counts, (counts{{6, 8}, {10, 12}}));
  read = loads_from_counts({.counts = f.path, .axes = "layer,sample,expert"});
  EXPECT_EQ(read->loads.counts, (counts{{4, 6}, {12, 14}}));
  read = loads_from_counts({.counts = f.path, .axes = "expert,step,layer"});
  EXPECT_EQ(read->loads.counts, (counts{{4, 12}, {6, 14}}));
}

std::string refusal(const expected<read_loads>& read) {
  if (read) return "read";
  const std::string& text = read.error().text;
  return text.substr(text.find("malformed: ") == std::string::npos ? 0
                                                                   : text.find("malformed: ") + 11);
}

TEST(plan_loads, errors_of_counts_name_tensor_and_place) {
  safetensors f;
  f.write<std::int32_t>(dtype::i32, {{"a", {2, 2}}}, {1, 2, 3, -4}, {{"num_experts", "3"}});
  EXPECT_EQ(refusal(loads_from_counts({.counts = f.path})),
            "tensor a layer 1 expert 1: -4 is no count");
  EXPECT_EQ(refusal(loads_from_counts({.counts = f.path, .tensor = "x"})),
            "it has no tensor x; it has a");
  EXPECT_EQ(refusal(loads_from_counts({.counts = f.path, .axes = "layer,layer"})),
            "setting --axes is layer,layer; allowed: layer, expert and, where it is there, step or "
            "sample, each once, by commas");
  EXPECT_EQ(
      refusal(loads_from_counts({.counts = f.path, .axes = "layer,step,expert"})),
      "tensor a is I32 [2, 2]; 3 dimensions are needed; --tensor chooses one, --axes names its "
      "dimensions");
  f.write<std::int32_t>(dtype::i32, {{"a", {2, 2}}}, {1, 2, 3, 4}, {{"num_experts", "3"}});
  EXPECT_EQ(refusal(loads_from_counts({.counts = f.path})),
            "2 layers of 2 experts; 3 experts are expected; is another --axes meant?");
  f.write<std::int32_t>(dtype::i32, {{"a", {2, 2}}}, {1, 2, 3, 4}, {{"layer_ids", "4,4"}});
  EXPECT_EQ(refusal(loads_from_counts({.counts = f.path})),
            "metadata layer_ids must list 2 rising numbers");
  f.write<float>(dtype::f32, {{"a", {2, 2}}}, {1, 2, 3, 4});
  EXPECT_EQ(refusal(loads_from_counts({.counts = f.path})),
            "tensor a is F32; whole numbers are needed (U8 to U64, I8 to I64)");
}

TEST(plan_loads, a_tensor_without_numbers_is_refused_by_its_sizes) {
  safetensors f;
  const std::vector<std::int64_t> none;
  for (const std::vector<std::uint64_t>& shape :
       {std::vector<std::uint64_t>{0, 4}, {4, 0}, {3, 0, 4}, {std::uint64_t{1} << 40, 0, 4096}}) {
    f.write<std::int64_t>(dtype::i64, {{"a", shape}}, none);
    const std::string text = refusal(loads_from_counts({.counts = f.path}));
    EXPECT_TRUE(
        text.ends_with("at most 1024 layers of 4096 are expected; is another --axes meant?"))
        << text;
  }
  // No step is no load, of as many layers as were told.
  f.write<std::int64_t>(dtype::i64, {{"a", {0, 2, 4}}}, none);
  EXPECT_EQ(loads_from_counts({.counts = f.path})->loads.counts,
            (counts{{0, 0, 0, 0}, {0, 0, 0, 0}}));
  f.write<std::int64_t>(dtype::i64, {{"a", {0, std::uint64_t{1} << 40, 4}}}, none);
  EXPECT_TRUE(
      refusal(loads_from_counts({.counts = f.path})).starts_with("1099511627776 layers of 4 "));
}

TEST(plan_loads, an_overflowing_sum_is_told_as_one) {
  safetensors f;
  f.write<std::int64_t>(dtype::i64, {{"a", {1, 1}}, {"b", {1, 1}}, {"c", {1, 1}}}, {INT64_MAX});
  EXPECT_EQ(refusal(loads_from_counts({.counts = f.path})),
            "tensor c layer 0 expert 0: the sum is beyond 64 bits");
}

TEST(plan_loads, a_huge_file_is_not_read_into_memory) {
  safetensors f;
  f.write<std::uint8_t>(dtype::u8, {{"a", {1, 1}}}, {1});
  std::filesystem::resize_file(f.path, 0);
  const std::uint64_t bytes =
      (std::uint64_t{1} << 30) + 1;  // a hole: no block of the disk is taken
  std::string header = R"({"a":{"dtype":"U8","shape":[)" + std::to_string(bytes) +
                       R"(,1,1],"data_offsets":[0,)" + std::to_string(bytes) + "]}}";
  const std::uint64_t size = header.size();
  std::ofstream(f.path, std::ios::binary).write(reinterpret_cast<const char*>(&size), 8) << header;
  std::filesystem::resize_file(f.path, 8 + size + bytes);
  EXPECT_EQ(refusal(loads_from_counts({.counts = f.path})),
            "the size of tensor a in bytes is 1073741825; at most 1073741824");
}

TEST(plan_loads, traces_of_a_layer_are_counted_over_all_prefixes) {
  safetensors f;
  f.write<std::int32_t>(dtype::i32,
                        {{"x.layer2", {2, 2}}, {"y.layer2", {2, 2}}, {"y.layer10", {2, 2}}},
                        {0, 1, 1, -1});
  auto read = loads_from_trace({.trace = f.path, .experts = 3});
  ASSERT_TRUE(read.has_value()) << read.error().text;
  EXPECT_EQ(read->loads.layers, (std::vector<layer_id>{layer_id{2}, layer_id{10}}));
  EXPECT_EQ(read->loads.counts, (counts{{2, 4, 0}, {1, 2, 0}}));
  read = loads_from_trace({.trace = f.path, .prefix = "x.", .experts = 3});
  EXPECT_EQ(read->loads.counts, (counts{{1, 2, 0}}));
  EXPECT_EQ(refusal(loads_from_trace({.trace = f.path, .experts = 1})),
            "tensor x.layer2 row 0: expert 1 of 1");
  EXPECT_EQ(
      refusal(loads_from_trace({.trace = f.path})),
      "setting --experts is not given; allowed: 1 to 4096, or --model: a trace does not say how "
      "many there are");
  EXPECT_EQ(refusal(loads_from_trace({.trace = f.path, .prefix = "z", .experts = 3})).substr(0, 23),
            "it has no tensor z...; ");
}

}  // namespace
}  // namespace moetier::cli
