#include "schemas/safetensors/tensor_file.hpp"

#include <filesystem>
#include <random>

#include <sys/stat.h>

#include "schemas/safetensors/tensor_writer.hpp"
#include "tests/schemas/file/scratch_folder.hpp"

namespace moetier {
namespace {

std::string with_length(std::uint64_t length, std::string_view rest) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes.push_back(static_cast<char>(length >> (8 * i)));
  return bytes.append(rest);
}

std::span<const std::byte> bytes_of(const auto& values) { return std::as_bytes(std::span(values)); }

expected<void> write(const std::string& path, const std::vector<tensor_to_write>& tensors) {
  return write_tensors(path, tensors);
}

std::vector<std::byte> content(const tensor_file& file, std::string_view name) {
  const tensor_info* const tensor = file.header().find(name);
  if (tensor == nullptr) return {};
  std::vector<std::byte> bytes(tensor->bytes());
  EXPECT_TRUE(file.read(*tensor, bytes));
  return bytes;
}

TEST(tensor_file, refuses_files_whose_header_does_not_fit) {
  const scratch_folder folder;
  const auto refusal = [&](std::string_view bytes) {
    return sentence(tensor_file::open(folder.write("f", bytes)), folder);
  };
  EXPECT_EQ(refusal(""), "DIR/f is malformed: it has 0 bytes, too few for a header");
  EXPECT_EQ(refusal("1234567"), "DIR/f is malformed: it has 7 bytes, too few for a header");
  EXPECT_EQ(refusal(with_length(3, "{}")),
            "DIR/f is malformed: its header of 3 bytes does not fit in 10");
  EXPECT_EQ(refusal(with_length(0, "")), "DIR/f is malformed: its header does not start with {");
  EXPECT_EQ(refusal(with_length(k_safetensors_header_bytes_max + 1, "{}")),
            "the header of DIR/f in bytes is 16777217; at most 16777216");
  EXPECT_EQ(refusal(with_length(0xffffffffffffffffu, "{}")),
            "the header of DIR/f in bytes is 18446744073709551615; at most 16777216");
  EXPECT_EQ(refusal(with_length(2, "{}x")),
            "DIR/f is malformed: its tensors end at byte 0 of 1 data bytes");
  EXPECT_EQ(refusal(with_length(2, "{}")), "ok");
  EXPECT_EQ(sentence(tensor_file::open(folder.file("none")), folder),
            "cannot read DIR/none: No such file or directory");
}

TEST(tensor_file, a_file_cut_after_it_was_opened_is_an_error_and_no_signal) {
  const scratch_folder folder;
  const std::vector<float> values(1000, 1.0F);
  ASSERT_TRUE(write(folder.file("f"), {{"t", dtype::f32, {1000}, bytes_of(values)}}));
  auto file = tensor_file::open(folder.file("f"));
  ASSERT_TRUE(file) << sentence(file);
  std::filesystem::resize_file(folder.file("f"), 100);
  std::vector<std::byte> bytes(4000);
  const auto result = (*file)->read(*(*file)->header().find("t"), bytes);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().why, reason::file_unreadable);
  EXPECT_NE(result.error().text.find("it was cut while in use: 4000 bytes"), std::string::npos);
}

TEST(tensor_file, a_file_replaced_after_it_was_opened_goes_on_as_it_was) {
  const scratch_folder folder;
  const std::vector<float> before{1.0F, 2.0F};
  const std::vector<float> after{3.0F, 4.0F};
  ASSERT_TRUE(write(folder.file("f"), {{"t", dtype::f32, {2}, bytes_of(before)}}));
  auto file = tensor_file::open(folder.file("f"));
  ASSERT_TRUE(write(folder.file("f"), {{"t", dtype::f32, {2}, bytes_of(after)}}));
  EXPECT_TRUE(std::ranges::equal(content(**file, "t"), bytes_of(before)));
}

TEST(tensor_writer, what_is_written_is_read_back) {
  const scratch_folder folder;
  const std::vector<std::uint8_t> small{1, 2, 3};
  const std::vector<std::int64_t> wide{-1, 7};
  const std::vector<float> scalar{2.5F};
  const std::vector<tensor_to_write> tensors{
      {"small", dtype::u8, {3}, bytes_of(small)},
      {"wide", dtype::i64, {2, 1}, bytes_of(wide)},
      {"scalar", dtype::f32, {}, bytes_of(scalar)},
      {"none", dtype::bf16, {0, 4}, {}},
      {"name with \"quotes\" \xc3\xa4", dtype::u8, {3}, bytes_of(small)},
  };
  const std::vector<std::pair<std::string, std::string>> metadata{{"layer", "3"}, {"a", "b"}};
  const auto written = write_tensors(folder.file("f"), tensors, metadata);
  ASSERT_TRUE(written) << sentence(written);
  EXPECT_EQ(folder.files(), 1u) << "no temporary file is left";

  auto file = tensor_file::open(folder.file("f"));
  ASSERT_TRUE(file) << sentence(file);
  for (const tensor_to_write& tensor : tensors) {
    const tensor_info* const found = (*file)->header().find(tensor.name);
    ASSERT_NE(found, nullptr) << tensor.name;
    EXPECT_EQ(found->type->element, tensor.element);
    EXPECT_TRUE(std::ranges::equal(found->shape(), tensor.shape));
    EXPECT_TRUE(std::ranges::equal(content(**file, tensor.name), tensor.bytes));
  }
  EXPECT_EQ((*file)->header().find("wide")->begin, 0u) << "the widest first, so all are aligned";
  EXPECT_EQ((*file)->header().metadata, (decltype(metadata){{"a", "b"}, {"layer", "3"}}));
  const std::string raw = folder.read("f");
  EXPECT_EQ(raw[0] % 8, 0) << "the data begin at a multiple of 8";
}

TEST(tensor_writer, refuses_what_no_reader_would_take_and_leaves_the_old_file) {
  const scratch_folder folder;
  folder.write("f", "old");
  const std::vector<float> two{1.0F, 2.0F};
  const auto refusal = [&](const std::vector<tensor_to_write>& tensors) {
    return sentence(write_tensors(folder.file("f"), tensors), folder);
  };
  EXPECT_EQ(refusal({{"t", dtype::f32, {3}, bytes_of(two)}}),
            "t has shape F32 [3]; expected one of 8 bytes");
  EXPECT_EQ(refusal({{"t", dtype::f32, {0x4000000000000000u, 4}, bytes_of(two)}}),
            "t has shape F32 [4611686018427387904, 4]; expected one of 8 bytes");
  EXPECT_EQ(refusal({{"t", dtype::f32, {2}, bytes_of(two)}, {"t", dtype::f32, {2}, bytes_of(two)}}),
            "a tensor's name is t; allowed: one that no other tensor has");
  EXPECT_EQ(refusal({{"__metadata__", dtype::f32, {2}, bytes_of(two)}}),
            "a tensor's name is __metadata__; allowed: any other");
  EXPECT_EQ(refusal({{"t", dtype::other, {2}, bytes_of(two)}}),
            "t has dtype other; allowed: a named one");
  EXPECT_EQ(refusal({{"t\xff", dtype::f32, {2}, bytes_of(two)}}),
            "a name or metadata is no UTF-8; allowed: UTF-8");
  EXPECT_EQ(folder.read("f"), "old");
  EXPECT_EQ(folder.files(), 1u);
}

TEST(tensor_writer, names_the_file_that_it_cannot_write) {
  const scratch_folder folder;
  EXPECT_EQ(sentence(write_tensors(folder.file("none/f"), {}), folder),
            "cannot write DIR/none/f: No such file or directory");
  std::filesystem::create_directory(folder.file("d"));
  EXPECT_EQ(sentence(write_tensors(folder.file("d"), {}), folder),
            "cannot write DIR/d: it is a directory");
  EXPECT_EQ(folder.files(), 1u) << "no temporary file is left";
}

TEST(tensor_writer, replaces_regular_files_only) {
  const scratch_folder folder;
  ASSERT_EQ(::mkfifo(folder.file("pipe").c_str(), 0600), 0);
  std::filesystem::create_symlink(folder.file("pipe"), folder.file("link"));
  for (const char* name : {"pipe", "link"}) {
    const auto written = write_tensors(folder.file(name), {});
    ASSERT_FALSE(written) << name;
    EXPECT_EQ(written.error().why, reason::file_unwritable);
  }
  EXPECT_TRUE(std::filesystem::is_fifo(folder.file("pipe")));
  EXPECT_TRUE(std::filesystem::is_symlink(folder.file("link")));
  EXPECT_EQ(folder.files(), 2u) << "no temporary file is left";
}

TEST(tensor_file, any_mutation_of_a_file_is_read_or_refused) {
  const scratch_folder folder;
  const std::vector<float> values{1.0F, 2.0F, 3.0F};
  ASSERT_TRUE(write(folder.file("good"), {{"a", dtype::f32, {3}, bytes_of(values)},
                                          {"b", dtype::u8, {4}, bytes_of(values).first(4)}}));
  const std::string good = folder.read("good");
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    std::mt19937_64 random(seed);
    std::string bytes = good;
    if (random() % 3 == 0) bytes.resize(random() % (bytes.size() + 8));
    for (std::uint64_t edits = random() % 3; edits > 0 && !bytes.empty(); --edits)
      bytes[random() % bytes.size()] = static_cast<char>(random());
    const auto file = tensor_file::open(folder.write("f", bytes));
    if (!file) {
      ASSERT_TRUE(file.error().why == reason::file_malformed ||
                  file.error().why == reason::limit_exceeded)
          << "seed " << seed;
      continue;
    }
    for (const tensor_info& tensor : (*file)->header().tensors) {
      std::vector<std::byte> into(tensor.bytes());
      ASSERT_TRUE((*file)->read(tensor, into)) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace moetier
