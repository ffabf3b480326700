#include "actors/log/event_log.hpp"

#include <gtest/gtest.h>

namespace moetier {
namespace {

TEST(log_line, is_one_json_object_off_a_terminal) {
  EXPECT_EQ(log_line(true, "T", log_level::warn, "worker@2", "link_lost",
                     {{"epoch", std::uint64_t{7}}, {"why", "closed"}}),
            R"({"ts":"T","level":"warn","event":"link_lost","component":"worker@2","epoch":7,)"
            R"("why":"closed"})");
}

TEST(log_line, is_for_people_on_a_terminal) {
  EXPECT_EQ(log_line(false, "T", log_level::info, "up", "ready", {{"pid", std::uint64_t{3}}}),
            "T info  up ready  pid=3");
}

TEST(log_line, foreign_text_cannot_break_out_of_its_line) {
  const std::string line =
      log_line(true, "T", log_level::info, "c", "e", {{"name", "a\"b\n\\c\xff\x01"}});
  EXPECT_EQ(line.find('\n'), std::string::npos);
  EXPECT_NE(line.find(R"(a\"b\n\\c)"), std::string::npos) << line;
}

TEST(event_log, drops_and_counts_what_one_event_writes_too_often) {
  event_log log("test", log_level::error, true);
  for (int i = 0; i < 100; ++i) log.error("flood");
  // A second boundary may fall inside the loop, so at most two allowances are written.
  EXPECT_GE(log.dropped(), 60U);
  const std::uint64_t before = log.dropped();
  log.error("another_event");
  EXPECT_EQ(log.dropped(), before);
}

TEST(event_log, lines_below_its_level_cost_nothing) {
  event_log log("test", log_level::error, true);
  for (int i = 0; i < 100; ++i) log.info("quiet");
  EXPECT_EQ(log.dropped(), 0U);
}

}  // namespace
}  // namespace moetier
