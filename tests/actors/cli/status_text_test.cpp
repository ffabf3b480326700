#include "actors/cli/status_text.hpp"

#include <gtest/gtest.h>

#include "actors/cli/status_watch.hpp"

namespace moetier::cli {
namespace {

std::string with_resolution(const std::string& resolution) {
  return status_text(
      R"({"epoch": 3, "generation": 2, "ready": true, "backend": "moetier.cpu.avx2.none",
          "carrier": "ucx", "model": {"type": "qwen3_moe", "experts": 8, "top_k": 2,
          "format": "mxfp4", "moe_layers": 4}, "resolution": )" +
      resolution + "}");
}

TEST(status_text, names_the_model_the_backend_and_the_carrier) {
  EXPECT_EQ(with_resolution(R"({"degraded": false, "describe": "all is well"})")
                .rfind("epoch 3  generation 2  ready\n"
                       "model qwen3_moe  8 experts, 2 a token, 4 MoE layers, format mxfp4\n"
                       "backend moetier.cpu.avx2.none  carrier ucx\n\n",
                       0),
            0u);
}

TEST(status_text, says_degraded_only_where_it_is) {
  EXPECT_NE(with_resolution(R"x({"degraded": true, "describe": "backend B (degraded from A)"})x")
                .find("\ndegraded: backend B (degraded from A)\n"),
            std::string::npos);
  EXPECT_EQ(with_resolution(R"({"degraded": false, "describe": "backend B"})").find("degraded"),
            std::string::npos);
}

TEST(status_text, of_a_tier_that_has_nothing_yet_says_why) {
  const std::string text =
      status_text(R"({"ready": false, "not_ready_reasons": ["1 of 2 workers joined"]})");
  EXPECT_EQ(text.rfind("epoch 0  generation 0  not ready\n  1 of 2 workers joined\n\n", 0), 0u)
      << text;
  EXPECT_EQ(status_text("[]"), "");
}

constexpr const char* k_two_workers = R"({"ready":true,"epoch":3,"generation":1,
    "model":{"moe_layers":2},
    "workers":[{"worker":0,"name":"worker@1","state":"serving","incarnation":"aa","rows_total":900,
                "calls_total":30},
               {"worker":1,"name":"worker@2","state":"lost","incarnation":"bb","rows_total":50}],
    "sessions":[{"session":4,"tenant":"t","token_layers":400,"calls":20}],
    "load":[{"layer":1,"rows":[75,25],"balancedness":0.667,"hottest_expert":7,"hottest_rows":60},
            {"layer":2,"rows":[0,0]}],
    "events":[{"level":"warn","event":"worker_lost","detail":"worker@2: gone","age_ns":3000000000},
              {"level":"info","event":"older","detail":"","age_ns":9000000000}]})";
constexpr const char* k_two_seconds_before = R"({"workers":[
    {"name":"worker@1","incarnation":"aa","rows_total":100,"calls_total":10},
    {"name":"worker@2","incarnation":"old","rows_total":10}],
    "sessions":[{"session":4,"token_layers":0,"calls":0}]})";

TEST(status_text, shows_rows_by_layer_and_worker_out_of_the_same_document) {
  const std::string text = status_text(k_two_workers);
  EXPECT_NE(text.find("rows in this generation\n"
                      "layer  worker@1  worker@2  balance  hottest expert\n"
                      "    1        75        25     0.67  7 (60.0%)\n"
                      "    2         0         0        -               -\n"),
            std::string::npos)
      << text;
}

TEST(status_text, of_two_documents_has_rates_of_what_went_on_between_them) {
  const std::string text = status_text(k_two_workers, earlier_status{k_two_seconds_before, 2.0});
  EXPECT_NE(text.find("rows/s"), std::string::npos) << text;
  EXPECT_NE(text.find(" 400 "), std::string::npos) << text;  // (900 - 100) / 2 s
  EXPECT_NE(text.find(" 100 "), std::string::npos) << text;  // 400 token layers / 2 layers / 2 s
  EXPECT_EQ(status_line(k_two_workers, earlier_status{k_two_seconds_before, 2.0}),
            "epoch 3  generation 1  ready  workers 1/2  sessions 1  rows/s 400\n");
  // worker@2 is another process than it was: it has no rate.
  EXPECT_EQ(status_line(k_two_workers, std::nullopt),
            "epoch 3  generation 1  ready  workers 1/2  sessions 1  rows/s -\n");
}

TEST(events_text, has_the_newest_events_first) {
  EXPECT_EQ(events_text(k_two_workers, 1), "     3s ago  warn  worker_lost  worker@2: gone\n");
}

TEST(terminal_frame, fits_the_window_and_leaves_nothing_of_the_frame_before) {
  EXPECT_EQ(terminal_frame("abcdef\ngh\nij\n", 2, 4), "\x1b[Habcd\x1b[K\r\ngh\x1b[K\x1b[J");
  EXPECT_EQ(terminal_frame("ab\n", 5, 80), "\x1b[Hab\x1b[K\x1b[J");
  EXPECT_EQ(terminal_frame("\xc3\xa9\xc3\xa9\xc3\xa9", 1, 2), "\x1b[H\xc3\xa9\xc3\xa9\x1b[K\x1b[J");
}

TEST(terminal_frame, lets_no_name_move_the_cursor) {
  EXPECT_EQ(terminal_frame("a\x1b[2Jb", 1, 80), "\x1b[Ha?[2Jb\x1b[K\x1b[J");
}

}  // namespace
}  // namespace moetier::cli
