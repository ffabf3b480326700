#include "schemas/file/input_file.hpp"

#include <array>

#include <sys/stat.h>

#include "schemas/file/printable.hpp"
#include "tests/schemas/file/scratch_folder.hpp"

namespace moetier {
namespace {

TEST(input_file, reads_what_was_asked_for) {
  const scratch_folder folder;
  auto file = input_file::open(folder.write("a", "0123456789"));
  ASSERT_TRUE(file) << sentence(file);
  EXPECT_EQ((*file)->size(), 10u);
  std::array<std::byte, 3> bytes{};
  ASSERT_TRUE((*file)->read(4, bytes));
  EXPECT_EQ(bytes, (std::array{std::byte{'4'}, std::byte{'5'}, std::byte{'6'}}));
}

TEST(input_file, a_file_cut_while_open_is_an_error_and_no_signal) {
  const scratch_folder folder;
  const std::string name = folder.write("a", std::string(10000, 'x'));
  auto file = input_file::open(name);
  ASSERT_TRUE(file);
  std::filesystem::resize_file(name, 4);
  std::array<std::byte, 8> bytes{};
  EXPECT_EQ(sentence((*file)->read(0, bytes), folder),
            "cannot read DIR/a: it was cut while in use: 8 bytes at offset 0 were due, 4 came");
}

TEST(input_file, refuses_what_is_no_readable_file) {
  const scratch_folder folder;
  EXPECT_EQ(sentence(input_file::open(folder.file("none")), folder),
            "cannot read DIR/none: No such file or directory");
  EXPECT_EQ(sentence(input_file::open(folder.path()), folder),
            "cannot read DIR: it is not a regular file");
  ASSERT_EQ(::mkfifo(folder.file("pipe").c_str(), 0600), 0);
  EXPECT_EQ(sentence(input_file::open(folder.file("pipe")), folder),
            "cannot read DIR/pipe: it is not a regular file");
}

TEST(input_file, a_text_may_be_as_large_as_the_limit_and_no_larger) {
  const scratch_folder folder;
  const std::string name = folder.write("a", "12345");
  EXPECT_EQ(*input_file::read_text(name, 5), "12345");
  EXPECT_EQ(sentence(input_file::read_text(name, 4), folder),
            "the size of DIR/a in bytes is 5; at most 4");
}

TEST(printable, shows_ascii_and_cuts_long_names_in_the_middle) {
  EXPECT_EQ(printable("model.norm"), "model.norm");
  EXPECT_EQ(printable("a\x1b[31m\xc3\xa4\n"), "a?[31m???");
  const std::string longest(64, 'x');
  EXPECT_EQ(printable(longest), longest);
  EXPECT_EQ(printable(std::string(80, 'a') + "tail"),
            std::string(31, 'a') + "..." + std::string(26, 'a') + "tail");
}

}  // namespace
}  // namespace moetier
