#include "actors/cli/figure_demand.hpp"

#include <limits>

#include <gtest/gtest.h>

namespace moetier::cli {
namespace {

constexpr figure_kind k_kinds[] = {{"cost"}, {"tokens_per_s", true}};

TEST(figure_demand, is_a_name_and_a_number) {
  EXPECT_EQ(parse_demand("cost=1.3"), (figure_demand{"cost", 1.3}));
  EXPECT_EQ(parse_demand("tokens_per_s=2e5"), (figure_demand{"tokens_per_s", 2e5}));
  for (const char* wrong :
       {"", "cost", "=1", "cost=", "cost=fast", "cost=1.3x", "cost=inf", "cost=nan", "cost= 1"}) {
    EXPECT_FALSE(parse_demand(wrong)) << wrong;
  }
}

TEST(figure_demand, of_a_figure_that_the_bench_lacks_is_refused_with_those_it_has) {
  EXPECT_TRUE(check_demands(std::vector<figure_demand>{{"cost", 1}, {"tokens_per_s", 1}}, k_kinds));
  const auto refused = check_demands(std::vector<figure_demand>{{"price", 1}}, k_kinds);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().text, "setting --assert is price; allowed: cost, tokens_per_s");
}

TEST(figure_demand, holds_at_its_value_and_breaks_beyond_it_in_the_figures_direction) {
  const std::vector<measured_figure> figures{
      {"cost", "1 session", 1.0}, {"cost", "4 sessions", 1.3}, {"tokens_per_s", "4 sessions", 500}};
  const auto broken = [&](figure_demand d) {
    return unmet(std::vector<figure_demand>{std::move(d)}, k_kinds, figures);
  };
  EXPECT_TRUE(broken({"cost", 1.3}).empty());
  EXPECT_EQ(broken({"cost", 1.25}),
            std::vector<std::string>{"cost is 1.3 (4 sessions); demanded: at most 1.25"});
  EXPECT_EQ(broken({"cost", 0.5}).size(), 2U);  // every row is judged
  EXPECT_TRUE(broken({"tokens_per_s", 500}).empty());
  EXPECT_EQ(broken({"tokens_per_s", 501}),
            std::vector<std::string>{"tokens_per_s is 500 (4 sessions); demanded: at least 501"});
}

TEST(figure_demand, is_not_met_by_what_is_no_number_or_was_not_measured) {
  const std::vector<figure_demand> demands{{"cost", 1.3}};
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(unmet(demands, k_kinds, std::vector<measured_figure>{{"cost", "row", nan}}).size(), 1U);
  EXPECT_EQ(unmet(demands, k_kinds, {}),
            std::vector<std::string>{"cost was not measured in this run"});
}

}  // namespace
}  // namespace moetier::cli
