#include "actors/cli/session_cell.hpp"

#include <gtest/gtest.h>

namespace moetier::cli {
namespace {

using round = std::vector<session_turn>;

TEST(session_cell, the_cost_is_the_median_of_the_ratios_within_rounds) {
  // The second round's machine is ten times as slow, for all; the third has one bad turn.
  const std::vector<round> rounds{{{1, 100'000, 0}, {4, 120'000, 0}},
                                  {{4, 1'300'000, 0}, {1, 1'000'000, 0}},
                                  {{1, 100'000, 0}, {4, 500'000, 0}}};
  const auto cells = cells_of(rounds, {.workers = 1, .tokens = 8, .steps = 10});
  ASSERT_EQ(cells.size(), 2U);
  EXPECT_EQ(cells[0].sessions, 1U);
  EXPECT_DOUBLE_EQ(cells[0].cost, 1);
  EXPECT_EQ(cells[1].sessions, 4U);
  EXPECT_DOUBLE_EQ(cells[1].cost, 1.3);
  EXPECT_DOUBLE_EQ(cells[1].cost_min, 1.2);
  EXPECT_DOUBLE_EQ(cells[1].cost_max, 5);
  EXPECT_DOUBLE_EQ(cells[1].step_us, 50);  // 500 us of ten steps
  EXPECT_DOUBLE_EQ(cells[1].tokens_per_s(), 8 / 50e-6);
}

TEST(session_cell, compute_is_shown_by_step_and_as_a_share_of_all_workers_time) {
  const std::vector<round> rounds{{{1, 100'000, 120'000}}};
  const auto cells = cells_of(rounds, {.workers = 2, .tokens = 8, .steps = 10});
  EXPECT_DOUBLE_EQ(cells[0].compute_us, 12);
  EXPECT_DOUBLE_EQ(cells[0].compute_share, 0.6);
  EXPECT_TRUE(session_json(cells[0]).contains("compute_share"));
  const auto unknown = cells_of(std::vector<round>{{{1, 100'000, 0}}}, {.workers = 2, .steps = 1});
  EXPECT_FALSE(session_json(unknown[0]).contains("compute_share"));
}

TEST(session_cell, every_number_of_sessions_is_first_in_turn) {
  EXPECT_EQ(order_of_round({1, 2, 4}, 0), (std::vector<std::uint32_t>{1, 2, 4}));
  EXPECT_EQ(order_of_round({1, 2, 4}, 1), (std::vector<std::uint32_t>{2, 4, 1}));
  EXPECT_EQ(order_of_round({1, 2, 4}, 5), (std::vector<std::uint32_t>{4, 1, 2}));
}

TEST(session_cell, tokens_are_equal_however_many_sessions_share_them) {
  for (std::uint32_t tokens = 1; tokens <= 40; ++tokens) {
    for (std::uint32_t sessions = 1; sessions <= tokens; ++sessions) {
      std::uint32_t sum = 0;
      for (std::uint32_t s = 0; s < sessions; ++s) {
        const std::uint32_t own = tokens_of_session(tokens, sessions, s);
        EXPECT_GE(own, tokens / sessions);
        EXPECT_LE(own, tokens / sessions + 1);
        sum += own;
      }
      EXPECT_EQ(sum, tokens) << sessions;
    }
  }
}

TEST(session_cell, figures_name_their_row) {
  const auto cells = cells_of(std::vector<round>{{{1, 100'000, 0}, {2, 110'000, 0}}},
                              {.workers = 3, .tokens = 8, .steps = 10});
  const auto figures = session_figures(cells);
  ASSERT_EQ(figures.size(), 4U);
  EXPECT_EQ(figures[2].name, "cost");
  EXPECT_EQ(figures[2].row, "2 session(s), 8 token(s), 3 worker(s)");
  EXPECT_DOUBLE_EQ(figures[2].value, 1.1);
}

}  // namespace
}  // namespace moetier::cli
