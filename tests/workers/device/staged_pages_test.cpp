#include "workers/device/staged_pages.hpp"

#include <algorithm>

#include "tests/schemas/file/scratch_folder.hpp"
#include "tests/workers/device/late_queue.hpp"

namespace moetier::workers {
namespace {

class staged_pages_test : public testing::Test {
 protected:
  staged_pages_test() {
    auto queue = std::make_unique<late_queue>();
    queue_ = queue.get();
    auto made = staged_pages::create(std::move(queue), 4 * 64, 64);
    if (!made) throw std::runtime_error(made.error().text);
    pages_ = std::move(*made);
  }

  std::byte* fill(std::size_t page, int mark) {
    const auto bytes = pages_->stage(page * 64, 64);
    if (!bytes) return nullptr;
    std::ranges::fill(*bytes, static_cast<std::byte>(mark));
    return pages_->send() ? bytes->data() : nullptr;
  }
  bool shows(std::size_t page, int mark) const {
    return std::all_of(pages_->base() + page * 64, pages_->base() + page * 64 + 64,
                       [&](std::byte b) { return b == static_cast<std::byte>(mark); });
  }

  late_queue* queue_ = nullptr;
  std::unique_ptr<staged_pages> pages_;
};

TEST_F(staged_pages_test, packs_the_next_page_while_the_one_before_is_under_way) {
  const std::byte* const first = fill(2, 1);
  const std::byte* const second = fill(0, 2);
  ASSERT_NE(first, nullptr);
  ASSERT_NE(second, nullptr);
  EXPECT_NE(first, second);
  EXPECT_EQ(pages_->under_way(), 2u);
  EXPECT_FALSE(shows(2, 1));
}

TEST_F(staged_pages_test, takes_a_staging_place_again_only_when_its_bytes_have_landed) {
  const std::byte* const first = fill(2, 1);
  fill(0, 2);
  EXPECT_EQ(fill(3, 3), first);
  EXPECT_TRUE(shows(2, 1));
  EXPECT_EQ(pages_->under_way(), 2u);
  EXPECT_FALSE(shows(0, 2));
  ASSERT_TRUE(pages_->settle());
  EXPECT_EQ(pages_->under_way(), 0u);
  EXPECT_TRUE(shows(0, 2) && shows(3, 3));
}

TEST_F(staged_pages_test, says_why_bytes_did_not_land) {
  fill(0, 1);
  queue_->breaks = true;
  EXPECT_EQ(sentence(pages_->settle()), "the device failed: it broke");
  EXPECT_EQ(pages_->under_way(), 0u);
  EXPECT_EQ(sentence(pages_->settle()), "ok");  // nothing is under way any more
  ASSERT_TRUE(pages_->stage(0, 64));
  EXPECT_EQ(sentence(pages_->send()), "the device failed: it broke");
}

TEST_F(staged_pages_test, are_refused_where_the_device_has_no_room) {
  const staged_pages_maker maker([]() -> expected<std::unique_ptr<device_queue>> {
    auto queue = std::make_unique<late_queue>();
    queue->bytes_max = 4 * 64 - 1;
    return queue;
  });
  EXPECT_FALSE(maker.on_host());
  EXPECT_EQ(sentence(maker.make(4 * 64, 64)), "device memory needs 256 bytes; fewer are available");
}

}  // namespace
}  // namespace moetier::workers
