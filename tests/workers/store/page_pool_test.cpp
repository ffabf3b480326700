#include "workers/store/page_pool.hpp"

#include <algorithm>

#include "tests/schemas/file/scratch_folder.hpp"
#include "tests/workers/store/late_memory.hpp"

namespace moetier::workers {
namespace {

constexpr std::size_t k_mebibyte = 1 << 20;

TEST(page_pool, is_billed_in_whole_huge_pages) {
  EXPECT_EQ(*page_pool::bill(64, 1), 2 * k_mebibyte);
  EXPECT_EQ(*page_pool::bill(k_mebibyte, 2), 2 * k_mebibyte);
  EXPECT_EQ(*page_pool::bill(k_mebibyte, 3), 4 * k_mebibyte);
}

TEST(page_pool, refuses_a_bill_above_the_limit_with_both_numbers) {
  EXPECT_EQ(sentence(page_pool::create(k_mebibyte, 3, 4 * k_mebibyte)), "ok");
  EXPECT_EQ(sentence(page_pool::create(k_mebibyte, 3, 4 * k_mebibyte - 1)),
            "the page pool needs 4194304 bytes; 4194303 are available");
  EXPECT_EQ(page_pool::create(k_mebibyte, 3, 0).error().code, status::no_memory);
}

TEST(page_pool, refuses_what_the_system_cannot_map) {
  const auto result = page_pool::create(std::size_t{1} << 40, 1 << 20, ~std::size_t{0});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().text,
            "the page pool needs 1152921504606846976 bytes; fewer are available");
}

TEST(page_pool, refuses_sizes_that_overflow) {
  EXPECT_EQ(sentence(page_pool::bill(64, std::uint64_t{1} << 32)),
            "the number of pages is 4294967296; at most 4294967295");
  EXPECT_EQ(sentence(page_pool::bill(std::size_t{1} << 62, 2)),
            "the number of pages is 2; at most 1");
}

TEST(page_pool, hands_out_the_lowest_empty_page_at_a_fixed_aligned_address) {
  auto made = page_pool::create(192, 4, 2 * k_mebibyte);
  ASSERT_TRUE(made) << sentence(made);
  page_pool& pool = **made;
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(pool.address({0})) % (2 * k_mebibyte), 0u);
  for (std::uint32_t i = 0; i < 4; ++i) {
    const page_index page = pool.begin_fill();
    EXPECT_EQ(page.value, i);
    const auto bytes = pool.stage(page);
    ASSERT_TRUE(bytes) << sentence(bytes);
    EXPECT_EQ(bytes->data(), pool.address({0}) + 192 * i);
    EXPECT_EQ(bytes->size(), 192u);
    std::ranges::fill(*bytes, std::byte{1});
    ASSERT_TRUE(pool.send(page));
    EXPECT_EQ(pool.state(page), page_state::verified);
  }
  EXPECT_EQ(pool.count(page_state::empty), 0u);
  pool.move({2}, page_state::empty);
  EXPECT_EQ(pool.begin_fill(), page_index{2});
}

TEST(page_pool, counts_pages_by_state_through_a_whole_life) {
  auto made = page_pool::create(64, 2, 2 * k_mebibyte);
  page_pool& pool = **made;
  const page_index page = pool.begin_fill();
  for (const page_state next : {page_state::verified, page_state::serving, page_state::retiring}) {
    pool.move(page, next);
    EXPECT_EQ(pool.state(page), next);
    EXPECT_EQ(pool.count(next), 1u);
    EXPECT_EQ(pool.count(page_state::empty), 1u);
  }
  pool.move(page, page_state::empty);
  EXPECT_EQ(pool.count(page_state::empty), 2u);
}

TEST(page_pool, verifies_a_page_when_its_bytes_have_landed) {
  const late_memory_maker late;
  auto made = page_pool::create(64, 3, 2 * k_mebibyte, late);
  ASSERT_TRUE(made) << sentence(made);
  page_pool& pool = **made;
  const auto fill = [&] {
    const page_index page = pool.begin_fill();
    std::ranges::fill(*pool.stage(page), std::byte{7});
    EXPECT_TRUE(pool.send(page));
    return page;
  };
  const page_index first = fill();
  EXPECT_EQ(pool.state(first), page_state::filling);
  EXPECT_NE(pool.address(first)[63], std::byte{7});
  const page_index second = fill();
  EXPECT_EQ(pool.state(first), page_state::verified);  // the staging place was needed again
  EXPECT_EQ(pool.address(first)[63], std::byte{7});
  EXPECT_EQ(pool.state(second), page_state::filling);
  ASSERT_TRUE(pool.settle());
  EXPECT_EQ(pool.state(second), page_state::verified);
  EXPECT_EQ(pool.address(second)[63], std::byte{7});
}

TEST(page_pool, leaves_pages_filling_whose_bytes_were_lost) {
  const late_memory_maker late;
  auto made = page_pool::create(64, 1, 2 * k_mebibyte, late);
  page_pool& pool = **made;
  const page_index page = pool.begin_fill();
  std::ranges::fill(*pool.stage(page), std::byte{7});
  ASSERT_TRUE(pool.send(page));
  late.made->broken = true;
  EXPECT_EQ(sentence(pool.settle()), "internal error: the copy broke");
  EXPECT_EQ(pool.state(page), page_state::filling);
  pool.move(page, page_state::empty);
  late.made->broken = false;
  EXPECT_TRUE(pool.settle());
}

TEST(page_pool_death_test, a_page_in_use_is_neither_written_nor_emptied) {
  auto made = page_pool::create(64, 1, 2 * k_mebibyte);
  page_pool& pool = **made;
  const page_index page = pool.begin_fill();
  EXPECT_DEATH(pool.begin_fill(), "states_.end");
  EXPECT_DEATH(pool.move(page, page_state::serving), "is_step");
  pool.move(page, page_state::verified);
  pool.move(page, page_state::serving);
  EXPECT_DEATH((void)pool.stage(page), "page_state::filling");
  EXPECT_DEATH((void)pool.send(page), "page_state::filling");
  EXPECT_DEATH(pool.move(page, page_state::empty), "is_step");
}

}  // namespace
}  // namespace moetier::workers
