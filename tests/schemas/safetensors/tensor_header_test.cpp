#include "schemas/safetensors/tensor_header.hpp"

#include <algorithm>
#include <random>

#include "tests/schemas/file/scratch_folder.hpp"

namespace moetier {
namespace {

using namespace std::string_view_literals;

// Two tensors, 16 + 6 bytes.
constexpr std::string_view k_good = R"({"__metadata__":{"format":"pt"},)"
                                    R"("b":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},)"
                                    R"("a":{"dtype":"BF16","shape":[3],"data_offsets":[16,22]}}  )";

std::string refusal(std::string_view text, std::uint64_t data_bytes) {
  return sentence(parse_tensor_header(text, data_bytes, "f"));
}

// A header of one tensor "t" with these three values.
std::string one(std::string_view dtype, std::string_view shape, std::string_view offsets) {
  std::string text = R"({"t":{"dtype":)";
  return text.append(dtype)
      .append(R"(,"shape":)")
      .append(shape)
      .append(R"(,"data_offsets":)")
      .append(offsets)
      .append("}}");
}

TEST(tensor_header, reads_tensors_by_name_and_metadata) {
  const auto header = parse_tensor_header(k_good, 22, "f");
  ASSERT_TRUE(header) << sentence(header);
  ASSERT_EQ(header->tensors.size(), 2u);
  EXPECT_EQ(header->tensors[0].name, "a");
  const tensor_info* const b = header->find("b");
  ASSERT_NE(b, nullptr);
  EXPECT_EQ(b->type->element, dtype::f32);
  EXPECT_EQ(shape_text(*b->type, b->shape()), "F32 [2, 2]");
  EXPECT_EQ(b->bytes(), 16u);
  EXPECT_EQ(header->find("a")->begin, 16u);
  EXPECT_EQ(header->find("c"), nullptr);
  EXPECT_EQ(header->metadata, (decltype(header->metadata){{"format", "pt"}}));
}

TEST(tensor_header, takes_empty_scalar_and_padded_ones) {
  EXPECT_EQ(refusal("{}", 0), "ok");
  EXPECT_EQ(refusal("{}        ", 0), "ok");
  EXPECT_EQ(refusal(one(R"("F32")", "[]", "[0,4]"), 4), "ok") << "rank 0";
  EXPECT_EQ(refusal(one(R"("F32")", "[0,3]", "[0,0]"), 0), "ok") << "no element";
  EXPECT_EQ(refusal(one(R"("F4")", "[4]", "[0,2]"), 2), "ok") << "two elements a byte";
  EXPECT_EQ(refusal(one(R"("F8_E8M0")", "[4]", "[0,4]"), 4), "ok") << "no type of ours";
  EXPECT_EQ(refusal(one(R"("U8")", "[1,1,1,1,1,1,1,1]", "[0,1]"), 1), "ok") << "rank 8";
  EXPECT_EQ(refusal(R"({"e":{"dtype":"U8","shape":[0],"data_offsets":[2,2]},)"
                    R"("t":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
                    R"("u":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}})",
                    3),
            "ok")
      << "an empty tensor between two others";
}

TEST(tensor_header, refuses_text_that_is_no_header) {
  EXPECT_EQ(refusal("", 0), "f is malformed: its header does not start with {");
  EXPECT_EQ(refusal(" {}", 0), "f is malformed: its header does not start with {");
  EXPECT_EQ(refusal("[]", 0), "f is malformed: its header does not start with {");
  EXPECT_EQ(refusal("\xef\xbb\xbf{}", 0), "f is malformed: its header does not start with {");
  EXPECT_EQ(refusal("{}\0\0"sv, 0), "f is malformed: byte 2 of its header is NUL");
  EXPECT_EQ(refusal("{} x", 0), "f is malformed: the header is no JSON at byte 4");
  EXPECT_EQ(refusal("{", 0), "f is malformed: the header is no JSON at byte 2");
  EXPECT_EQ(refusal("{\"\xff\":{}}", 0), "f is malformed: the header is no JSON at byte 3");
  EXPECT_EQ(refusal(std::string(k_safetensors_header_bytes_max + 1, '{'), 0),
            "the header of f in bytes is 16777217; at most 16777216");
}

TEST(tensor_header, refuses_doubled_keys_everywhere) {
  constexpr std::string_view k_entry = R"({"dtype":"U8","shape":[0],"data_offsets":[0,0]})";
  const auto twice = [&](std::string_view a, std::string_view b) {
    std::string text = "{\"";
    text.append(a).append("\":").append(k_entry).append(",\"").append(b).append("\":");
    return text.append(k_entry).append("}");
  };
  EXPECT_EQ(refusal(twice("a", "a"), 0), R"(f is malformed: key "a" stands twice)");
  EXPECT_EQ(refusal(twice("a", "\\u0061"), 0), R"(f is malformed: key "a" stands twice)");
  EXPECT_EQ(refusal(R"({"__metadata__":{},"__metadata__":{}})", 0),
            R"(f is malformed: key "__metadata__" stands twice)");
  EXPECT_EQ(refusal(R"({"__metadata__":{"x":"1","x":"2"}})", 0),
            R"(f is malformed: metadata key "x" stands twice)");
  EXPECT_EQ(refusal(R"({"t":{"dtype":"U8","dtype":"U8","shape":[0],"data_offsets":[0,0]}})", 0),
            R"(f is malformed: key "dtype" of tensor "t" stands twice)");
}

TEST(tensor_header, refuses_unknown_types_and_keys) {
  EXPECT_EQ(refusal(one(R"("F7")", "[1]", "[0,1]"), 1),
            R"(f is malformed: tensor "t" has the unknown dtype "F7")");
  EXPECT_EQ(refusal(one(R"("f32")", "[1]", "[0,4]"), 4),
            R"(f is malformed: tensor "t" has the unknown dtype "f32")");
  EXPECT_EQ(refusal(R"({"t":{"dtype":"U8","strides":[1],"shape":[1],"data_offsets":[0,1]}})", 1),
            R"(f is malformed: tensor "t" has the unknown key "strides")");
  EXPECT_EQ(refusal(R"({"t":{"dtype":"U8","shape":[0]}})", 0),
            R"(f is malformed: tensor "t" lacks dtype, shape or data_offsets)");
}

TEST(tensor_header, refuses_values_in_the_wrong_place) {
  EXPECT_EQ(refusal(R"({"t":3})", 0), R"(f is malformed: a number stands for tensor "t")");
  EXPECT_EQ(refusal(R"({"t":[]})", 0), R"(f is malformed: a list stands for tensor "t")");
  EXPECT_EQ(refusal(R"({"__metadata__":{"x":{}}})", 0),
            R"(f is malformed: an object stands in the metadata "x")");
  EXPECT_EQ(refusal(R"({"__metadata__":{"x":1}})", 0),
            R"(f is malformed: a number stands in the metadata "x")");
  EXPECT_EQ(refusal(R"({"__metadata__":"x"})", 0),
            R"(f is malformed: a string stands for tensor "__metadata__")");
  EXPECT_EQ(refusal(one("32", "[1]", "[0,1]"), 1),
            R"(f is malformed: a number stands in the dtype of tensor "t")");
  EXPECT_EQ(refusal(one(R"("U8")", "[[1]]", "[0,1]"), 1),
            R"(f is malformed: a list stands in the shape of tensor "t")");
  EXPECT_EQ(refusal(one(R"("U8")", "[{}]", "[0,1]"), 1),
            R"(f is malformed: an object stands in the shape of tensor "t")");
  EXPECT_EQ(refusal(one(R"("U8")", "[-1]", "[0,1]"), 1),
            R"(f is malformed: a negative number stands in the shape of tensor "t")");
  EXPECT_EQ(
      refusal(one(R"("U8")", "[1.0]", "[0,1]"), 1),
      R"(f is malformed: a number that is no 64-bit integer stands in the shape of tensor "t")");
  EXPECT_EQ(
      refusal(one(R"("U8")", "[18446744073709551616]", "[0,1]"), 1),
      R"(f is malformed: a number that is no 64-bit integer stands in the shape of tensor "t")");
  EXPECT_EQ(refusal(one(R"("U8")", "[true]", "[0,1]"), 1),
            R"(f is malformed: a truth value stands in the shape of tensor "t")");
  EXPECT_EQ(refusal(one(R"("U8")", "null", "[0,1]"), 1),
            R"(f is malformed: null stands in the shape of tensor "t")");
  EXPECT_EQ(refusal(one(R"("U8")", "[1]", R"(["0",1])"), 1),
            R"(f is malformed: a string stands in the data_offsets of tensor "t")");
}

TEST(tensor_header, refuses_shapes_and_offsets_of_a_wrong_length) {
  EXPECT_EQ(refusal(one(R"("U8")", "[1]", "[0]"), 1),
            R"(f is malformed: tensor "t" has fewer than two data_offsets)");
  EXPECT_EQ(refusal(one(R"("U8")", "[1]", "[0,1,2]"), 1),
            R"(f is malformed: tensor "t" has more than two data_offsets)");
  EXPECT_EQ(refusal(one(R"("U8")", "[1,1,1,1,1,1,1,1,1]", "[0,1]"), 1),
            R"(f is malformed: tensor "t" has more than 8 dimensions)");
}

TEST(tensor_header, refuses_sizes_that_do_not_add_up) {
  EXPECT_EQ(refusal(one(R"("F32")", "[4611686018427387904,4]", "[0,0]"), 0),
            R"(f is malformed: the size of tensor "t" overflows)");
  EXPECT_EQ(refusal(one(R"("U8")", "[18446744073709551615]", "[0,0]"), 0),
            R"(f is malformed: the size of tensor "t" overflows)");
  EXPECT_EQ(refusal(one(R"("F4")", "[3]", "[0,1]"), 1),
            R"(f is malformed: tensor "t" does not fill whole bytes)");
  EXPECT_EQ(refusal(one(R"("U8")", "[1]", "[3,2]"), 8),
            R"(f is malformed: tensor "t" begins at 3, after its end 2)");
  EXPECT_EQ(refusal(one(R"("U8")", "[9]", "[0,9]"), 8),
            R"(f is malformed: tensor "t" ends at byte 9 of 8 data bytes)");
  EXPECT_EQ(refusal(one(R"("U8")", "[1]", "[18446744073709551614,18446744073709551615]"), 8),
            R"(f is malformed: tensor "t" ends at byte 18446744073709551615 of 8 data bytes)");
  EXPECT_EQ(refusal(one(R"("F32")", "[2]", "[0,4]"), 4),
            R"(f is malformed: tensor "t" is F32 [2], 8 bytes, but its data_offsets hold 4)");
}

TEST(tensor_header, refuses_holes_overlaps_and_a_tail) {
  const auto two = [](std::string_view a, std::string_view b) {
    std::string text = R"({"a":{"dtype":"U8","shape":[4],"data_offsets":)";
    return text.append(a)
        .append(R"(},"b":{"dtype":"U8","shape":[4],"data_offsets":)")
        .append(b)
        .append("}}");
  };
  EXPECT_EQ(refusal(two("[4,8]", "[0,4]"), 8), "ok");
  EXPECT_EQ(refusal(two("[0,4]", "[5,9]"), 9),
            R"(f is malformed: tensor "b" begins at 5, behind a hole after the end of its )"
            R"(neighbour at 4)");
  EXPECT_EQ(refusal(two("[0,4]", "[3,7]"), 7),
            R"(f is malformed: tensor "b" begins at 3, before the end of its neighbour at 4)");
  EXPECT_EQ(refusal(two("[0,4]", "[0,4]"), 4),
            R"(f is malformed: tensor "b" begins at 0, before the end of its neighbour at 4)");
  EXPECT_EQ(refusal(two("[1,5]", "[5,9]"), 9),
            R"(f is malformed: tensor "a" begins at 1, behind a hole after the end of its )"
            R"(neighbour at 0)");
  EXPECT_EQ(refusal(two("[0,4]", "[4,8]"), 9),
            "f is malformed: its tensors end at byte 8 of 9 data bytes");
  EXPECT_EQ(refusal("{}", 1), "f is malformed: its tensors end at byte 0 of 1 data bytes");
}

TEST(tensor_header, foreign_names_never_reach_a_sentence_raw) {
  EXPECT_EQ(refusal("{\"a\x7f\xc3\xa4"
                    R"(\u001b":1})",
                    0),
            R"(f is malformed: a number stands for tensor "a????")");
}

void expect_sound(const tensor_header& header, std::uint64_t data_bytes, std::uint64_t seed) {
  std::uint64_t covered = 0;
  for (const tensor_info& tensor : header.tensors) {
    ASSERT_LE(tensor.begin, tensor.end) << "seed " << seed;
    ASSERT_LE(tensor.end, data_bytes) << "seed " << seed;
    ASSERT_EQ(header.find(tensor.name), &tensor) << "seed " << seed;
    covered += tensor.bytes();
  }
  ASSERT_EQ(covered, data_bytes) << "seed " << seed;
}

bool is_printable(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c >= 0x20 && c <= 0x7e; });
}

// One random edit of the kinds that have broken parsers of this format.
void mutate(std::string& text, std::mt19937_64& random) {
  constexpr std::string_view k_pieces[] = {"18446744073709551615",
                                           "9223372036854775808",
                                           "-1",
                                           "1e3",
                                           "0",
                                           "[",
                                           "]",
                                           "{",
                                           "}",
                                           "\"",
                                           ",",
                                           ":",
                                           "\\u0000",
                                           "\\ud800",
                                           "\xff",
                                           "\"dtype\"",
                                           "\"BF16\"",
                                           "\"a\":",
                                           "null",
                                           "  "};
  const std::size_t at = random() % (text.size() + 1);
  const std::size_t length = std::min<std::size_t>(random() % 12, text.size() - at);
  switch (random() % 4) {
    case 0:
      if (at < text.size()) text[at] = static_cast<char>(random());
      break;
    case 1: text.erase(at, length); break;
    case 2: text.insert(at, text.substr(at, length)); break;
    case 3: text.replace(at, length, k_pieces[random() % std::size(k_pieces)]); break;
  }
}

TEST(tensor_header, any_mutation_is_sound_or_a_typed_error) {
  std::size_t accepted = 0;
  for (std::uint64_t seed = 0; seed < 100000; ++seed) {
    std::mt19937_64 random(seed);
    std::string text(k_good);
    for (std::uint64_t edits = 1 + random() % 3; edits > 0; --edits) mutate(text, random);
    const auto header = parse_tensor_header(text, 22, "f");
    if (header) {
      ++accepted;
      expect_sound(*header, 22, seed);
    } else {
      ASSERT_EQ(header.error().why, reason::file_malformed) << "seed " << seed;
      ASSERT_TRUE(is_printable(header.error().text)) << "seed " << seed;
    }
  }
  EXPECT_GT(accepted, 100u) << "some edits are harmless: the test must reach the sound side";
}

TEST(tensor_header, any_layout_that_covers_the_data_once_is_read_back) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    std::mt19937_64 random(seed);
    std::string text = "{";
    std::uint64_t at = 0;
    const std::uint64_t count = random() % 20;
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t rows = random() % 5;
      const std::uint64_t end = at + rows * 6 * 2;
      text += (i == 0 ? "\"t" : ",\"t") + std::to_string(i) + R"(":{"shape":[)" +
              std::to_string(rows) + R"(,6],"data_offsets":[)" + std::to_string(at) + "," +
              std::to_string(end) + R"(],"dtype":"F16"})";
      at = end;
    }
    const auto header = parse_tensor_header(text + "}", at, "f");
    ASSERT_TRUE(header) << "seed " << seed << ": " << sentence(header);
    ASSERT_EQ(header->tensors.size(), count);
    expect_sound(*header, at, seed);
  }
}

}  // namespace
}  // namespace moetier
