#include "actors/cli/tier_document.hpp"

#include <gtest/gtest.h>

namespace moetier::cli {
namespace {

latency_figures all(double us) { return {us, us, us, us, us, us, us}; }

tier_cell cell() {
  return {.workers = 2,
          .tokens = 16,
          .calls = 10,
          .total = all(100),
          .route = all(5),
          .pack = all(3),
          .wait = all(82),
          .sum = all(4),
          .split = {.total = 101,
                    .route = 5,
                    .pack = 3,
                    .wire = 26,
                    .queue = 12,
                    .group = 3,
                    .compute = 36,
                    .give_back = 3,
                    .combine = 4,
                    .rest = 9},
          .stages_known = true,
          .echo = all(10),
          .compute_alone = all(30),
          .bytes = 50'000};
}

TEST(tier_document, own_share_is_the_whole_less_the_workers_compute) {
  const tier_cell c = cell();
  EXPECT_DOUBLE_EQ(*c.own_share_us(), 101 - 36);
  EXPECT_DOUBLE_EQ(*c.own_share_echoes(), 6.5);
  EXPECT_DOUBLE_EQ(*c.roofline_ratio(), (36.0 + 10) / 101);
  EXPECT_DOUBLE_EQ(c.tokens_per_s(), 160'000);
  EXPECT_DOUBLE_EQ(c.gb_per_s(), 0.5);
}

TEST(tier_document, without_the_workers_stages_compute_alone_stands_in) {
  tier_cell c = cell();
  c.stages_known = false;
  EXPECT_DOUBLE_EQ(*c.own_share_us(), 70);
  c.compute_alone.reset();  // a GPU that this process may not use
  EXPECT_FALSE(c.own_share_us());
  EXPECT_FALSE(c.own_share_echoes());
  EXPECT_FALSE(tier_json(c).contains("own_share_us"));
  EXPECT_EQ(tier_figures(std::vector{c}).size(), 3U);
}

TEST(tier_document, its_split_adds_up) {
  for (const bool known : {true, false}) {
    tier_cell c = cell();
    c.stages_known = known;
    if (!known) {
      c.split.held = c.split.queue + c.split.group + c.split.compute + c.split.give_back;
    }
    const auto split = tier_json(c)["split_us"];
    double sum = 0;
    for (const auto& [name, us] : split.items()) sum += name == "total" ? 0 : us.get<double>();
    EXPECT_DOUBLE_EQ(sum, split["total"].get<double>()) << known;
    EXPECT_EQ(split.contains("queue"), known);
  }
}

TEST(tier_document, has_the_keys_that_every_bench_has) {
  const auto j = tier_json(cell());
  for (const char* key : {"latency_us", "stages_us", "tokens_per_s", "algbw", "busbw",
                          "roofline_ratio", "echo_us", "compute_us", "own_share_echoes"}) {
    EXPECT_TRUE(j.contains(key)) << key;
  }
  for (const char* key : {"min", "mean", "p50", "p90", "p99", "p999", "max"})
    EXPECT_TRUE(j["latency_us"].contains(key)) << key;
}

TEST(tier_document, its_table_is_one_row_a_cell_and_its_rest_has_what_has_no_column) {
  EXPECT_EQ(tier_table(std::vector{cell()}).markdown(),
            "| workers | tokens | p50 us | p99 us | tokens/s | route | wire | queue | compute | "
            "combine | rest | echo us | own share us | in echoes |\n"
            "|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n"
            "| 2 | 16 | 100 | 100 | 160000 | 8.0 | 26.0 | 12.0 | 36.0 | 4.0 | 15.0 | 10.0 | 65.0 | "
            "6.5 |\n");
}

TEST(tier_document, every_figure_that_it_shows_can_be_demanded) {
  const auto figures = tier_figures(std::vector{cell()});
  EXPECT_EQ(figures.size(), k_tier_figures.size());
  for (const measured_figure& f : figures) {
    EXPECT_TRUE(
        check_demands(std::vector<figure_demand>{{std::string(f.name), 1}}, k_tier_figures));
    EXPECT_EQ(f.row, "2 worker(s), 16 token(s)");
  }
}

}  // namespace
}  // namespace moetier::cli
