#include "actors/config/up_settings.hpp"

#include <gtest/gtest.h>

#include "actors/config/key_table.hpp"

namespace moetier::config {
namespace {

up_settings of(std::string_view text) {
  const auto file = read_yaml(text, "tier.yaml");
  EXPECT_TRUE(file);
  const layer layers[] = {*file};
  auto l = load(layers);
  EXPECT_TRUE(l) << (l ? "" : l.error().text);
  return up_settings_of(std::move(*l));
}

std::string origin(const up_settings& s, std::string_view key) {
  return s.tier.origins[static_cast<std::size_t>(find_key(key) - key_table().data())];
}

TEST(up_settings, its_own_defaults_are_free_ports_and_a_temporary_state_and_are_shown) {
  const up_settings s = up_settings_of(*load({}));
  EXPECT_EQ(s.tier.values.coordinator.control_listen, "127.0.0.1:0");
  EXPECT_EQ(s.tier.values.http.listen, "127.0.0.1:0");
  EXPECT_EQ(s.tier.values.coordinator.state_dir, "");
  EXPECT_EQ(s.tier.values.coordinator.rpc_listen, "127.0.0.1:7400");
  EXPECT_TRUE(s.ignored.empty());
  EXPECT_FALSE(s.workers_given);
  const std::string printed = print_yaml(s.tier);
  EXPECT_EQ(printed.find("127.0.0.1:7402"), std::string::npos) << printed;
  EXPECT_EQ(printed.find("/var/lib/moetier"), std::string::npos) << printed;
  EXPECT_EQ(origin(s, "http.listen"), "default of up: a free port each");
  EXPECT_EQ(printed.find("127.0.0.1:7401"), std::string::npos) << printed;
  EXPECT_EQ(printed.find("worker@1"), std::string::npos) << printed;
  EXPECT_EQ(origin(s, "worker.name"), "set by up for each worker");
}

TEST(up_settings, what_was_given_is_kept_with_its_origin_even_where_it_is_the_default) {
  const up_settings s =
      of("coordinator:\n  control_listen: 127.0.0.1:7401\n  state_dir: /s\n  workers: 1\n"
         "http:\n  listen: 127.0.0.1:7402\n");
  EXPECT_EQ(s.tier.values.coordinator.control_listen, "127.0.0.1:7401");
  EXPECT_EQ(s.tier.values.http.listen, "127.0.0.1:7402");
  EXPECT_EQ(s.tier.values.coordinator.state_dir, "/s");
  EXPECT_EQ(origin(s, "http.listen"), "tier.yaml:6");
  EXPECT_TRUE(s.workers_given);
}

TEST(up_settings, what_it_must_set_itself_is_told_as_ignored) {
  const up_settings s = of("worker:\n  name: w\n  coordinator: 127.0.0.1:9\n");
  EXPECT_EQ(s.ignored, (std::vector<std::string>{"worker.coordinator (tier.yaml:3)",
                                                 "worker.name (tier.yaml:2)"}));
  EXPECT_EQ(origin(s, "worker.name"), "tier.yaml:2; ignored by up, which sets it for each worker");
}

TEST(up_settings, a_number_of_workers_that_contradicts_the_plan_is_refused) {
  const up_settings given = of("coordinator:\n  workers: 3\n  placement: p.json\n");
  const auto refused = workers_of_plan(given, 2);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().why, reason::config_invalid);
  EXPECT_EQ(refused.error().text,
            "setting coordinator.workers is 3; allowed: 2, as the plan file p.json has it, or not "
            "given");
  EXPECT_EQ(workers_of_plan(given, 3), 3U);
  const up_settings open = of("coordinator:\n  placement: p.json\n");
  EXPECT_EQ(workers_of_plan(open, 2), 2U);
  EXPECT_EQ(origin(open, "coordinator.workers"), "default; the plan file decides");
}

TEST(up_settings, workers_show_their_pages_on_the_ports_behind_the_coordinators) {
  settings s;
  s.http.listen = "127.0.0.1:7402";
  EXPECT_EQ(worker_http_listen(s, 0), "127.0.0.1:7403");
  EXPECT_EQ(worker_http_listen(s, 2), "127.0.0.1:7405");
  s.http.listen = "127.0.0.1:0";
  EXPECT_EQ(worker_http_listen(s, 2), "127.0.0.1:0");
  s.http.listen = "127.0.0.1:65534";
  EXPECT_EQ(worker_http_listen(s, 0), "127.0.0.1:65535");
  const auto beyond = worker_http_listen(s, 1);
  ASSERT_FALSE(beyond);
  EXPECT_EQ(beyond.error().text,
            "setting http.listen is '127.0.0.1:65534'; allowed: port 0, or one with a port behind "
            "it for each worker");
}

}  // namespace
}  // namespace moetier::config
