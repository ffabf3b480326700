#include "actors/http/pages.hpp"

#include <algorithm>
#include <map>
#include <string>

#include <gtest/gtest.h>

#include "actors/http/coordinator_probe.hpp"
#include "actors/http/debug_pages.hpp"
#include "actors/http/worker_probe.hpp"

namespace moetier::http {
namespace {

coordinator::tier_view two_workers() {
  coordinator::tier_view v;
  v.epoch = epoch_number{9};
  v.generation = generation_number{1};
  v.ready = false;
  v.not_ready_reasons = {"layer 2 expert 7 has no live replica"};
  v.lost_experts = 1;
  v.gone_by_cause[static_cast<std::size_t>(coordinator::loss_cause::refused)] = 3;
  v.workers.resize(2);
  v.workers[0].worker = worker_id{0};
  v.workers[0].name = "worker@0";
  v.workers[0].state = coordinator::worker_state::serving;
  v.workers[0].heartbeat_age = 20 * k_millisecond;
  v.workers[1].worker = worker_id{1};
  v.workers[1].name = "<script>\"&";
  v.workers[1].state = coordinator::worker_state::lost;
  return v;
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST(readyz, is_503_with_every_reason) {
  const response r = readyz(false, {"waiting for 1 of 3 workers"});
  EXPECT_EQ(r.code, 503);
  EXPECT_TRUE(has(r.body, "waiting for 1 of 3 workers")) << r.body;
  EXPECT_EQ(readyz(true, {}).code, 200);
}

TEST(readyz, foreign_bytes_in_a_reason_do_not_break_it) {
  EXPECT_EQ(readyz(false, {"worker \xff\"\n"}).code, 503);
}

TEST(status_page, is_files_of_the_program_that_load_nothing_from_elsewhere) {
  const auto pages = status_pages([] { return std::string("{}"); });
  std::vector<std::string> paths;
  for (const page& p : pages) {
    paths.push_back(p.path);
    const response r = p.answer();
    EXPECT_EQ(r.code, 200) << p.path;
    EXPECT_FALSE(r.body.empty()) << p.path;
    EXPECT_FALSE(p.private_to_host) << p.path;
    // The icon's name space is a name, not an address that is asked.
    for (const char* outside : {"https://", "//cdn", "@import", " onclick=", "innerHTML"}) {
      EXPECT_FALSE(has(r.body, outside)) << p.path << " has " << outside;
    }
  }
  std::ranges::sort(paths);
  EXPECT_EQ(paths, (std::vector<std::string>{"/", "/page/draw.js", "/page/format.js",
                                             "/page/history.js", "/page/icon.svg", "/page/main.js",
                                             "/page/page.css", "/status.json"}));
}

TEST(status_page, has_the_type_that_a_browser_wants_of_each_file) {
  const std::map<std::string, std::string, std::less<>> type_of{
      {"html", "text/html; charset=utf-8"},
      {"js", "text/javascript; charset=utf-8"},
      {"css", "text/css; charset=utf-8"},
      {"svg", "image/svg+xml"},
      {"json", "application/json"}};
  for (const page& p : status_pages([] { return std::string("{}"); })) {
    const std::string type = p.answer().type;
    const std::string file = p.path.substr(p.path.rfind('.') + 1);
    EXPECT_EQ(type, type_of.at(p.path == "/" ? "html" : file)) << p.path;
  }
}

TEST(worker_page, turns_no_name_into_markup) {
  const response r = worker_status_page("<script>\"&", {});
  EXPECT_TRUE(has(r.body, "&lt;script&gt;&quot;&amp;")) << r.body;
  EXPECT_FALSE(has(r.body, "<script"));
  EXPECT_TRUE(has(r.body, "not joined to a coordinator"));
}

TEST(debug_page, is_for_this_machine_and_says_why_it_has_nothing_yet) {
  const page config = debug_page("config", [] { return std::string("{}"); });
  EXPECT_EQ(config.path, "/debug/config");
  EXPECT_TRUE(config.private_to_host);
  EXPECT_EQ(config.answer().code, 200);
  const page early = debug_page("resolution", []() -> expected<std::string> {
    return fail(reason::not_ready, "nothing is resolved yet");
  });
  EXPECT_EQ(early.answer().code, 503);
  EXPECT_TRUE(has(early.answer().body, "nothing is resolved yet"));
}

TEST(metrics, of_a_coordinator_tell_what_the_view_shows) {
  const std::string text = coordinator_metrics(two_workers(), {.log_lines_dropped = 4});
  EXPECT_TRUE(has(text, "moetier_coordinator_epoch 9")) << text;
  EXPECT_TRUE(has(text, "moetier_coordinator_workers{state=\"serving\"} 1"));
  EXPECT_TRUE(has(text, "moetier_coordinator_workers{state=\"lost\"} 1"));
  EXPECT_TRUE(has(text, "moetier_coordinator_heartbeat_age_seconds{worker=\"0\"} 0.02"));
  EXPECT_TRUE(has(text, "moetier_coordinator_lost_experts 1"));
  EXPECT_TRUE(has(text, "moetier_coordinator_losses_total{cause=\"refused\"} 3"));
  EXPECT_TRUE(has(text, "moetier_coordinator_losses_total{cause=\"device\"} 0"));
  EXPECT_TRUE(has(text, "# TYPE moetier_log_lines_dropped_total counter"));
  EXPECT_TRUE(has(text, "moetier_build_info{version="));
}

TEST(metrics, a_worker_that_left_leaves_no_series) {
  auto view = two_workers();
  view.workers.pop_back();
  EXPECT_FALSE(has(coordinator_metrics(view, {}), "worker=\"1\""));
}

TEST(metrics, of_a_worker_tell_rows_by_layer_up_to_120_layers) {
  worker_figures f;
  f.layers = {{layer_id{3}, 17}};
  f.engine.calls[1] = 2;
  f.engine.rows[1] = 9;
  f.carrier.bytes_sent = 5;
  const std::string text = worker_metrics(f);
  EXPECT_TRUE(has(text, "moetier_worker_rows_total{layer=\"3\"} 17")) << text;
  EXPECT_TRUE(has(text, "moetier_worker_calls_total{status=\"invalid\"} 2")) << text;
  EXPECT_TRUE(has(text, "moetier_worker_refused_total{reason=\"invalid\"} 9")) << text;
  EXPECT_FALSE(has(text, "moetier_worker_refused_total{reason=\"ok\"}")) << text;
  EXPECT_FALSE(has(text, "device_memory")) << text;
  f.device = {.pages = 7, .workspace = 5, .calls = 3};
  EXPECT_TRUE(has(worker_metrics(f), "moetier_worker_device_memory_bytes{use=\"workspace\"} 5"));
  EXPECT_TRUE(has(text, "moetier_transport_bytes_total{direction=\"sent\"} 5"));
  f.layers.assign(121, {layer_id{1}, 1});
  EXPECT_FALSE(has(worker_metrics(f), "layer="));
}

TEST(worker_readiness, names_what_lacks) {
  workers::worker_summary s;
  EXPECT_EQ(not_ready_reasons(s).size(), 2U);
  s.joined = s.serving = true;
  EXPECT_EQ(not_ready_reasons(s), std::vector<std::string>{"the coordinator does not answer"});
  s.leased = true;
  EXPECT_TRUE(not_ready_reasons(s).empty());
  s.draining = true;
  EXPECT_EQ(not_ready_reasons(s), std::vector<std::string>{"draining"});
}

}  // namespace
}  // namespace moetier::http
