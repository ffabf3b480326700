#include "actors/up/state_folder.hpp"

#include <fstream>

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/actors/doctor/fake_root.hpp"

namespace moetier::up {
namespace {

namespace fs = std::filesystem;

std::size_t entries(const fs::path& folder) {
  return static_cast<std::size_t>(
      std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

TEST(state_folder, lives_as_long_as_its_owner) {
  const doctor::fake_root where;
  {
    const auto made = state_folder::make(where.path());
    ASSERT_TRUE(made) << made.error().text;
    EXPECT_EQ(entries(where.path()), 1U);
    fs::create_directory((*made)->path());
    std::ofstream(fs::path((*made)->path()) / "record.0") << "x";
  }
  EXPECT_EQ(entries(where.path()), 0U);
}

TEST(state_folder, the_next_start_removes_what_a_killed_one_left_and_no_more) {
  const doctor::fake_root where;
  const auto living = state_folder::make(where.path());
  ASSERT_TRUE(living);
  // As a kill leaves it: the lock file is there and nobody holds it.
  where.put("moetier-up-dead01/owner", "");
  where.put("moetier-up-dead01/state/record.0", "x");
  ::chmod((where.path() / "moetier-up-dead01").c_str(), 0700);
  where.put("moetier-up-open01/owner", "");  // others may write there: not one of ours
  ::chmod((where.path() / "moetier-up-open01").c_str(), 0755);
  where.put("moetier-up-young1/other", "");  // no lock file yet: being made
  ::chmod((where.path() / "moetier-up-young1").c_str(), 0700);
  where.put("somebody/owner", "");
  fs::create_directory_symlink(where.path() / "somebody", where.path() / "moetier-up-link01");

  EXPECT_EQ(state_folder::sweep(where.path()), 1U);
  EXPECT_FALSE(fs::exists(where.path() / "moetier-up-dead01"));
  EXPECT_TRUE(fs::exists(where.path() / "moetier-up-open01"));
  EXPECT_TRUE(fs::exists(where.path() / "moetier-up-young1"));
  EXPECT_TRUE(fs::exists(where.path() / "somebody/owner"));
  EXPECT_TRUE(fs::exists(fs::path((*living)->path()).parent_path()));
}

}  // namespace
}  // namespace moetier::up
