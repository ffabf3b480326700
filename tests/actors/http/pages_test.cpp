#include "actors/http/pages.hpp"

#include <gtest/gtest.h>

#include "actors/http/coordinator_probe.hpp"
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

TEST(status_page, shows_members_and_turns_no_name_into_markup) {
  const response r = coordinator_status_page(two_workers());
  EXPECT_EQ(r.code, 200);
  EXPECT_TRUE(has(r.body, "&lt;script&gt;&quot;&amp;")) << r.body;
  EXPECT_FALSE(has(r.body, "<script"));
  EXPECT_TRUE(has(r.body, "layer 2 expert 7 has no live replica"));
  for (const char* outside : {"http://", "https://", "src=", "@import"}) {
    EXPECT_FALSE(has(r.body, outside)) << outside;
  }
}

TEST(metrics, of_a_coordinator_tell_what_the_view_shows) {
  const std::string text = coordinator_metrics(two_workers(), {.log_lines_dropped = 4});
  EXPECT_TRUE(has(text, "moetier_coordinator_epoch 9")) << text;
  EXPECT_TRUE(has(text, "moetier_coordinator_workers{state=\"serving\"} 1"));
  EXPECT_TRUE(has(text, "moetier_coordinator_workers{state=\"lost\"} 1"));
  EXPECT_TRUE(has(text, "moetier_coordinator_heartbeat_age_seconds{worker=\"0\"} 0.02"));
  EXPECT_TRUE(has(text, "moetier_coordinator_lost_experts 1"));
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
  EXPECT_TRUE(not_ready_reasons(s).empty());
  s.draining = true;
  EXPECT_EQ(not_ready_reasons(s), std::vector<std::string>{"draining"});
}

}  // namespace
}  // namespace moetier::http
