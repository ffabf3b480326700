#include "schemas/safetensors/shard_set.hpp"

#include <filesystem>
#include <fstream>

#include "schemas/safetensors/tensor_writer.hpp"
#include "tests/schemas/file/scratch_folder.hpp"

namespace moetier {
namespace {

constexpr std::string_view k_index = "model.safetensors.index.json";

class shard_set_test : public testing::Test {
 protected:
  // A file whose tensors hold one byte each.
  void write_shard(std::string_view file, const std::vector<std::string>& names) {
    const std::byte one{1};
    std::vector<tensor_to_write> tensors;
    for (const std::string& name : names)
      tensors.push_back({name, dtype::u8, {1}, std::span(&one, 1)});
    ASSERT_TRUE(write_tensors(folder_.file(file), tensors));
  }
  void write_index(std::string_view map) {
    folder_.write(k_index,
                  R"({"metadata": {"total_size": 3}, "weight_map": )" + std::string(map) + "}");
  }
  std::string refusal() { return sentence(shard_set::open(folder_.path()), folder_); }

  const scratch_folder folder_;
};

TEST_F(shard_set_test, opens_a_single_file) {
  write_shard("model.safetensors", {"a", "b"});
  const auto set = shard_set::open(folder_.path());
  ASSERT_TRUE(set) << sentence(set);
  EXPECT_EQ((*set)->tensors().size(), 2u);
  EXPECT_EQ((*set)->find("b").tensor->name, "b");
  EXPECT_EQ((*set)->find("c").tensor, nullptr);
}

TEST_F(shard_set_test, opens_the_shards_of_an_index) {
  write_shard("s-2.safetensors", {"a"});
  write_shard("s-1.safetensors", {"b", "c"});
  write_index(R"({"a": "s-2.safetensors", "b": "s-1.safetensors", "c": "s-1.safetensors"})");
  const auto set = shard_set::open(folder_.path());
  ASSERT_TRUE(set) << sentence(set);
  ASSERT_EQ((*set)->tensors().size(), 3u);
  EXPECT_EQ((*set)->tensors()[0].tensor->name, "a");
  EXPECT_EQ((*set)->find("a").file->name(), folder_.file("s-2.safetensors"));
  EXPECT_EQ((*set)->find("c").file->name(), folder_.file("s-1.safetensors"));
}

TEST_F(shard_set_test, refuses_an_empty_directory_and_two_answers) {
  EXPECT_EQ(refusal(), "cannot read DIR/model.safetensors: No such file or directory");
  write_shard("model.safetensors", {"a"});
  write_index("{}");
  EXPECT_EQ(refusal(),
            "DIR is malformed: it holds both model.safetensors and "
            "model.safetensors.index.json; which is meant?");
}

TEST_F(shard_set_test, index_and_shards_must_agree_tensor_by_tensor) {
  write_shard("s1", {"a"});
  write_shard("s2", {"b"});
  write_index(R"({"a": "s1", "b": "s2", "c": "s2"})");
  EXPECT_EQ(refusal(),
            "DIR/model.safetensors.index.json is malformed: tensor \"c\" is not in s2, "
            "where the index has it");
  write_shard("s2", {"b", "c", "d"});
  EXPECT_EQ(refusal(),
            "DIR/model.safetensors.index.json is malformed: tensor \"d\" of s2 is not "
            "in the index");
  write_shard("s2", {"a", "b", "c"});
  EXPECT_EQ(refusal(),
            "DIR/model.safetensors.index.json is malformed: tensor \"a\" stands in s2 "
            "too; the index has it in s1");
  write_shard("s2", {"b", "c"});
  EXPECT_EQ(refusal(), "ok");
}

TEST_F(shard_set_test, a_shard_is_named_by_a_plain_name) {
  for (const char* name : {"../x", "/etc/passwd", "a/b", "..", ".", ".hidden", "", "a\\\\b", "a b",
                           "a\\u0000b", "a\\nb"}) {
    write_index(R"({"t": ")" + std::string(name) + "\"}");
    EXPECT_EQ(refusal(),
              "DIR/model.safetensors.index.json is malformed: the shard of tensor \"t\" "
              "is no plain file name")
        << name;
  }
  write_index(R"({"t": 3})");
  EXPECT_EQ(refusal(),
            "DIR/model.safetensors.index.json is malformed: the shard of tensor \"t\" "
            "is no plain file name");
}

TEST_F(shard_set_test, refuses_a_malformed_index) {
  folder_.write(k_index, "[]");
  EXPECT_EQ(refusal(),
            "DIR/model.safetensors.index.json is malformed: it has no object weight_map");
  folder_.write(k_index, R"({"weight_map": 3})");
  EXPECT_EQ(refusal(),
            "DIR/model.safetensors.index.json is malformed: it has no object weight_map");
  write_index("{}");
  EXPECT_EQ(refusal(), "DIR/model.safetensors.index.json is malformed: its weight_map is empty");
  write_index(R"({"a": "s1", "a": "s2"})");
  EXPECT_EQ(refusal(), "DIR/model.safetensors.index.json is malformed: key \"a\" stands twice");
  write_index(R"({"a": "none"})");
  EXPECT_EQ(refusal(), "cannot read DIR/none: No such file or directory");
  std::string many = "{";
  for (int i = 0; i < 513; ++i)
    many += (i == 0 ? "\"t" : ",\"t") + std::to_string(i) + "\": \"s" + std::to_string(i) + "\"";
  write_index(many + "}");
  EXPECT_EQ(refusal(),
            "the number of shards in DIR/model.safetensors.index.json is 513; at most 512");
}

TEST_F(shard_set_test, the_digest_tells_directories_apart) {
  const auto digest = [&] { return (*shard_set::open(folder_.path()))->digest(); };
  write_shard("s1", {"a"});
  write_shard("s2", {"b"});
  write_index(R"({"a": "s1", "b": "s2"})");
  const std::uint64_t first = digest();
  EXPECT_EQ(digest(), first);
  std::filesystem::rename(folder_.file("s2"), folder_.file("s3"));
  write_index(R"({"a": "s1", "b": "s3"})");
  EXPECT_NE(digest(), first) << "another name";
  write_shard("s1", {"b"});
  write_shard("s3", {"a"});
  write_index(R"({"a": "s3", "b": "s1"})");
  const std::uint64_t swapped = digest();
  EXPECT_NE(swapped, first) << "other headers";
  // The last byte of a file is in its sample.
  const auto last = static_cast<std::streamoff>(std::filesystem::file_size(folder_.file("s1"))) - 1;
  std::fstream file(folder_.file("s1"), std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(last).put('\x7f');
  file.close();
  EXPECT_NE(digest(), swapped) << "other bytes under the same header";
}

}  // namespace
}  // namespace moetier
