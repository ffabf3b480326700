#include "actors/up/restart_ledger.hpp"

#include <gtest/gtest.h>

namespace moetier::up {
namespace {

TEST(restart_ledger, gives_out_its_budget_and_no_more) {
  restart_ledger ledger({3, 30 * k_second});
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(ledger.take(k_second));
  EXPECT_FALSE(ledger.take(2 * k_second));
}

TEST(restart_ledger, what_lies_behind_the_window_is_free_again) {
  restart_ledger ledger({2, 10 * k_second});
  EXPECT_TRUE(ledger.take(0));
  EXPECT_TRUE(ledger.take(5 * k_second));
  EXPECT_FALSE(ledger.take(10 * k_second - 1));
  EXPECT_TRUE(ledger.take(10 * k_second));
  EXPECT_FALSE(ledger.take(14 * k_second));
}

TEST(restart_ledger, a_budget_of_none_restarts_nothing) {
  restart_ledger ledger({0, k_second});
  EXPECT_FALSE(ledger.take(0));
}

}  // namespace
}  // namespace moetier::up
