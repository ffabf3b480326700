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

TEST(log_line, of_two_fields_with_one_name_has_the_first) {
  EXPECT_EQ(log_line(true, "T", log_level::info, "c", "e", {{"epoch", 7}, {"epoch", 8}}),
            R"({"ts":"T","level":"info","event":"e","component":"c","epoch":7})");
}

TEST(log_line, moves_no_terminals_cursor) {
  EXPECT_EQ(log_line(false, "T", log_level::info, "c", "e", {{"name", "a\x1b[2Jb\n"}}),
            "T info  c e  name=a?[2Jb?");
}

TEST(event_log, says_in_each_json_line_which_worker_epoch_and_generation) {
  testing::internal::CaptureStderr();
  {
    event_log log("worker", log_level::info, true, "worker@2");
    log.stand(epoch_number(7), generation_number(1));
    log.info("linked", {{"session", 5}});
    log.info("told", {{"epoch", 9}, {"worker", "other"}});
  }
  const std::string lines = testing::internal::GetCapturedStderr();
  EXPECT_NE(lines.find(R"("event":"linked","component":"worker","worker":"worker@2","epoch":7,)"
                       R"("generation":1,"session":5})"),
            std::string::npos)
      << lines;
  EXPECT_NE(lines.find(R"("worker":"other","epoch":9,"generation":1})"), std::string::npos)
      << lines;
}

TEST(event_log, takes_another_level_while_it_runs) {
  testing::internal::CaptureStderr();
  {
    event_log log("c", log_level::error, true);
    log.info("before");
    log.set_level(log_level::debug);
    log.debug("while");
    log.set_level(log_level::off);
    log.error("after");
  }
  const std::string lines = testing::internal::GetCapturedStderr();
  EXPECT_EQ(lines.find("before"), std::string::npos);
  EXPECT_NE(lines.find("while"), std::string::npos);
  EXPECT_EQ(lines.find("after"), std::string::npos);
}

TEST(event_log, writes_one_line_a_second_of_one_reason_and_peer_and_counts_the_rest) {
  testing::internal::CaptureStderr();
  event_log log("c", log_level::info, true);
  for (int i = 0; i < 10; ++i) {
    log.info("refused", {{"reason", "no_credit"}, {"session", 1}});
    log.info("refused", {{"reason", "no_credit"}, {"session", 2}});
  }
  // A second boundary may fall inside the loop.
  EXPECT_GE(log.dropped(), 16U);
  EXPECT_LE(log.dropped(), 18U);
  const std::string lines = testing::internal::GetCapturedStderr();
  EXPECT_NE(lines.find(R"("session":1})"), std::string::npos);
  EXPECT_NE(lines.find(R"("session":2})"), std::string::npos);
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
