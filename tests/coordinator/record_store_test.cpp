// The durable record under everything a disk and a second process can do to it.

#include "coordinator/record_store.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <sys/stat.h>

#include <gtest/gtest.h>

#include "tests/schemas/file/scratch_folder.hpp"

namespace moetier::coordinator {
namespace {

namespace fs = std::filesystem;

class record_store_test : public testing::Test {
 protected:
  static record value(std::uint64_t epoch) {
    record r;
    r.epoch = epoch_number(epoch);
    r.generation = generation_number(1);
    r.plan = plan_hash(77);
    r.placement = {1, 2, 3};
    r.model_fingerprint = 5;
    r.checkpoint_digest = 6;
    r.checksums = {7, 8, 9};
    r.resolution = "{}";
    r.next_session = 65;
    return r;
  }
  std::string file(int i) const { return directory_ + "/record." + std::to_string(i); }
  std::vector<char> read(const std::string& path) const {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void write(const std::string& path, const std::vector<char>& bytes) const {
    std::ofstream(path, std::ios::binary | std::ios::trunc)
        .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }
  // Epochs 1, 2, 3 written: record.0 holds the second write, record.1 the first, then the third.
  void write_three() {
    auto store = record_store::open(directory_);
    ASSERT_TRUE(store.has_value());
    for (std::uint64_t e = 1; e <= 3; ++e) {
      ASSERT_TRUE((*store)->write(epoch_number(e - 1), value(e)).has_value());
    }
  }
  std::string refusal() const {
    auto store = record_store::open(directory_);
    return store ? "opened" : store.error().text;
  }

  scratch_folder scratch_;
  const std::string directory_ = scratch_.file("state");
};

TEST_F(record_store_test, a_fresh_directory_is_made_private_and_holds_nothing) {
  auto store = record_store::open(directory_);
  ASSERT_TRUE(store.has_value()) << store.error().text;
  EXPECT_FALSE((*store)->stored().has_value());
  EXPECT_EQ(fs::status(directory_).permissions(), fs::perms::owner_all);
}

TEST_F(record_store_test, what_was_written_is_read_by_the_next_process) {
  write_three();
  auto store = record_store::open(directory_);
  ASSERT_TRUE(store.has_value());
  EXPECT_EQ((*store)->stored(), value(3));
}

TEST_F(record_store_test, the_compare_and_set_refuses_another_epoch_and_keeps_what_is_stored) {
  write_three();
  auto store = record_store::open(directory_);
  auto refused = (*store)->write(epoch_number(2), value(4));
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().why, reason::sequence);
  EXPECT_EQ(refused.error().text,
            "a write of the durable record is not allowed here: epoch 3 is stored; 2 was expected");
  EXPECT_EQ((*store)->stored(), value(3));
  EXPECT_TRUE((*store)->write(epoch_number(3), value(3)).has_value())
      << "the same epoch may rewrite";
}

TEST_F(record_store_test, a_second_coordinator_on_the_same_state_is_refused) {
  auto first = record_store::open(directory_);
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(refusal(), "durable state: another coordinator runs on this state");
  first->reset();
  EXPECT_EQ(refusal(), "opened");
}

TEST_F(record_store_test, the_newest_file_cut_at_any_byte_leaves_the_one_before) {
  write_three();
  const auto whole = read(file(1));
  for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) {
    write(file(1), {whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(bytes)});
    auto store = record_store::open(directory_);
    ASSERT_TRUE(store.has_value()) << bytes;
    EXPECT_EQ((*store)->stored(), value(2)) << bytes;
    EXPECT_TRUE((*store)->damage().starts_with("record.1: ")) << (*store)->damage();
  }
}

TEST_F(record_store_test, the_newest_file_with_any_byte_flipped_leaves_the_one_before) {
  write_three();
  const auto whole = read(file(1));
  for (std::size_t i = 0; i < whole.size(); ++i) {
    auto flipped = whole;
    flipped[i] = static_cast<char>(flipped[i] ^ (1 << (i % 8)));
    write(file(1), flipped);
    auto store = record_store::open(directory_);
    ASSERT_TRUE(store.has_value()) << i;
    EXPECT_EQ((*store)->stored(), value(2)) << i;
  }
}

TEST_F(record_store_test, writing_goes_on_over_the_bad_file_and_never_over_the_good_one) {
  write_three();
  write(file(1), {'x'});
  {
    auto store = record_store::open(directory_);
    ASSERT_TRUE((*store)->write(epoch_number(2), value(9)).has_value());
  }
  write(file(0), {'x'});
  auto store = record_store::open(directory_);
  ASSERT_TRUE(store.has_value());
  EXPECT_EQ((*store)->stored(), value(9));
  EXPECT_NE((*store)->damage(), "");
}

TEST_F(record_store_test, whole_files_have_no_damage) {
  write_three();
  EXPECT_EQ((*record_store::open(directory_))->damage(), "");
}

TEST_F(record_store_test, two_bad_files_stop_the_start) {
  write_three();
  write(file(0), {'x'});
  write(file(1), {'y'});
  EXPECT_EQ(refusal(),
            "durable state: no whole record is left (record.1: durable state: a file is cut short)");
}

TEST_F(record_store_test, a_torn_first_write_is_no_record_at_all) {
  auto store = record_store::open(directory_);
  store->reset();
  write(file(1), {'x'});
  store = record_store::open(directory_);
  ASSERT_TRUE(store.has_value());
  EXPECT_FALSE((*store)->stored().has_value());
}

TEST_F(record_store_test, a_directory_that_others_can_enter_is_refused) {
  fs::create_directory(directory_);
  ASSERT_EQ(::chmod(directory_.c_str(), 0750), 0);
  EXPECT_EQ(refusal(), "durable state: the state directory has mode 0750; it must be 0700");
}

TEST_F(record_store_test, a_disk_that_fails_is_an_error_and_the_last_copy_stays) {
  write_three();
  auto store = record_store::open(directory_);
  ASSERT_TRUE(store.has_value());
  fs::remove(file(0));
  fs::create_directory(file(0));  // whatever the disk does, this file cannot be written
  auto failed = (*store)->write(epoch_number(3), value(4));
  ASSERT_FALSE(failed.has_value());
  EXPECT_EQ(failed.error().why, reason::state_unusable);
  EXPECT_EQ((*store)->stored(), value(3));
  fs::remove(file(0));
  EXPECT_TRUE((*store)->write(epoch_number(3), value(4)).has_value()) << "the same write, later";
  EXPECT_EQ((*store)->stored(), value(4));
}

TEST_F(record_store_test, a_record_survives_the_trip_through_bytes) {
  const auto bytes = to_bytes(value(3));
  auto back = record_from_bytes(bytes);
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(*back, value(3));
  EXPECT_FALSE(record_from_bytes(std::span(bytes).first(bytes.size() - 1)).has_value());
}

}  // namespace
}  // namespace moetier::coordinator
