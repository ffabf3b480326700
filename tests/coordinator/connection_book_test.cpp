#include "coordinator/rpc/connection_book.hpp"

#include <gtest/gtest.h>

namespace moetier::coordinator {
namespace {

constexpr connection_limits k_limits{.unproven_max = 3,
                                     .proven_max = 4,
                                     .peer_max = 2,
                                     .first_word = 5 * k_second,
                                     .silence = 30 * k_second,
                                     .yielding_after = 2 * k_second};

connection_book::number prove(connection_book& book, std::string_view peer, time_ns now) {
  const auto id = book.admit(now).id;
  EXPECT_TRUE(book.heard(id, peer, now).welcome);
  return id;
}

TEST(connection_book, a_newcomer_is_always_let_in_and_the_oldest_silent_one_goes) {
  connection_book book(k_limits);
  const auto first = book.admit(0).id;
  const auto second = book.admit(1).id;
  EXPECT_FALSE(book.admit(2).leaves);
  EXPECT_EQ(book.admit(3).leaves, first);
  EXPECT_EQ(book.admit(4).leaves, second);
  // A burst of a thousand: each pushes out another one, never a proven one.
  const auto proven = prove(book, "", 5);
  for (time_ns t = 6; t < 1006; ++t) {
    const auto answer = book.admit(t);
    if (answer.leaves) {
      EXPECT_NE(*answer.leaves, proven);
    }
  }
  EXPECT_EQ(book.unproven(), 3u);
  EXPECT_EQ(book.proven(), 1u);
}

TEST(connection_book, idle_ones_make_room_for_one_that_speaks) {
  connection_book book(k_limits);
  const auto a = prove(book, "", 0);
  for (int i = 0; i < 3; ++i) prove(book, "", 1);
  EXPECT_TRUE(book.heard(a, "", 3 * k_second).welcome);  // this one pings
  const auto late = book.admit(3 * k_second).id;
  const auto answer = book.heard(late, "", 3 * k_second);
  EXPECT_TRUE(answer.welcome);
  ASSERT_TRUE(answer.leaves);
  EXPECT_NE(*answer.leaves, a);
}

TEST(connection_book, where_all_speak_a_newcomer_finds_no_room) {
  connection_book book(k_limits);
  for (int i = 0; i < 4; ++i) prove(book, "", k_second);
  const auto late = book.admit(2 * k_second).id;
  EXPECT_FALSE(book.heard(late, "", 2 * k_second).welcome);
}

TEST(connection_book, no_name_holds_more_than_its_part) {
  connection_book book(k_limits);
  prove(book, "red", 0);
  prove(book, "red", 0);
  const auto third = book.admit(0).id;
  EXPECT_FALSE(book.heard(third, "red", 0).welcome);
  book.gone(third);
  prove(book, "blue", 0);
}

TEST(connection_book, silence_has_its_limits) {
  connection_book book(k_limits);
  const auto mute = book.admit(0).id;
  const auto spoke = prove(book, "", 0);
  EXPECT_TRUE(book.late(5 * k_second).empty());
  const auto first = book.late(6 * k_second);
  ASSERT_EQ(first.size(), 1u);
  EXPECT_EQ(first[0].id, mute);
  EXPECT_FALSE(first[0].proven);
  book.gone(mute);
  EXPECT_TRUE(book.heard(spoke, "", 20 * k_second).welcome);
  EXPECT_TRUE(book.late(50 * k_second).empty());
  ASSERT_EQ(book.late(51 * k_second).size(), 1u);
  EXPECT_TRUE(book.late(51 * k_second)[0].proven);
}

TEST(connection_book, one_that_is_gone_is_not_heard) {
  connection_book book(k_limits);
  const auto id = prove(book, "", 0);
  book.gone(id);
  EXPECT_FALSE(book.heard(id, "", 0).welcome);
  EXPECT_EQ(book.proven(), 0u);
}

}  // namespace
}  // namespace moetier::coordinator
