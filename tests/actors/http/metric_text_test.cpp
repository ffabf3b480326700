// Families as Prometheus reads them: names, types, one line a sample, cumulative buckets.
#include "actors/http/metric_text.hpp"

#include <gtest/gtest.h>

namespace moetier::http {
namespace {

TEST(metric_text, a_histogram_has_cumulative_buckets_in_seconds) {
  histogram h(k_event_bounds_ns);
  h.add(1'500'000);
  h.add(1'000'000);
  h.add(6'000'000'000);
  metric_text m;
  m.histogram("x_seconds", "What it took.");
  m.sample(h.read(), {{"part", "sum"}});
  const std::string text = m.text();
  EXPECT_TRUE(
      text.starts_with("# HELP moetier_x_seconds What it took.\n"
                       "# TYPE moetier_x_seconds histogram\n"))
      << text;
  for (const char* line : {"moetier_x_seconds_bucket{part=\"sum\",le=\"0.001\"} 1\n",
                           "moetier_x_seconds_bucket{part=\"sum\",le=\"0.002\"} 2\n",
                           "moetier_x_seconds_bucket{part=\"sum\",le=\"5\"} 2\n",
                           "moetier_x_seconds_bucket{part=\"sum\",le=\"+Inf\"} 3\n",
                           "moetier_x_seconds_count{part=\"sum\"} 3\n"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
  }
  EXPECT_NE(text.find("moetier_x_seconds_sum{part=\"sum\"} 6.0025"), std::string::npos) << text;
}

TEST(metric_text, counts_are_shown_as_they_are) {
  histogram h(k_count_bounds);
  h.add(3);
  metric_text m;
  m.histogram("x_rows", "Rows.");
  m.sample(h.read(), {}, 1.0);
  EXPECT_NE(m.text().find("moetier_x_rows_bucket{le=\"4\"} 1\n"), std::string::npos) << m.text();
  EXPECT_NE(m.text().find("moetier_x_rows_sum 3\n"), std::string::npos) << m.text();
}

}  // namespace
}  // namespace moetier::http
