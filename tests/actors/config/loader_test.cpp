#include "actors/config/loader.hpp"

#include <cstdio>

#include <gtest/gtest.h>

#include "actors/config/key_table.hpp"

namespace moetier::config {
namespace {

layer yaml(std::string_view text) {
  auto l = read_yaml(text, "tier.yaml");
  EXPECT_TRUE(l.has_value()) << (l ? "" : l.error().text);
  return l.value_or(layer{});
}

std::string yaml_error(std::string_view text) {
  const auto l = read_yaml(text, "tier.yaml");
  return l ? "(accepted)" : l.error().text;
}

// The text of the refusal of one file, or "(accepted)".
std::string load_error(std::string_view text) {
  const layer layers[] = {yaml(text)};
  const auto l = load(layers);
  return l ? "(accepted)" : l.error().text;
}

std::string environment_error(std::vector<std::string> variables) {
  const auto l = read_environment(variables);
  return l ? "(accepted)" : l.error().text;
}

TEST(loader, without_layers_gives_the_documented_defaults) {
  const auto l = load({});
  ASSERT_TRUE(l);
  EXPECT_EQ(l->values.coordinator.rpc_listen, "127.0.0.1:7400");
  EXPECT_EQ(l->values.detect.timeout, 500 * k_millisecond);
  EXPECT_EQ(l->values.restart.budget, (restart_budget{3, 30 * k_second}));
  for (const std::string& origin : l->origins) EXPECT_EQ(origin, "default");
}

TEST(loader, later_layers_win_and_origins_say_so) {
  const std::vector<std::string> variables{"MOETIER_WORKER_SLOTS=5", "PATH=/bin",
                                           "MOETIER_LOG_LEVEL=warn", "MOETIER_FULL=1"};
  const layer layers[] = {yaml("worker:\n  slots: 4\n  threads: 2\nlog:\n  level: debug\n"),
                          *read_environment(variables),
                          {{"log.level", "error", "flag --log-level"}}};
  const auto l = load(layers);
  ASSERT_TRUE(l) << l.error().text;
  EXPECT_EQ(l->values.worker.threads, 2U);
  EXPECT_EQ(l->values.worker.slots, 5U);
  EXPECT_EQ(l->values.log.level, "error");
  const std::string printed = print_yaml(*l);
  EXPECT_NE(printed.find("# tier.yaml:3"), std::string::npos) << printed;
  EXPECT_NE(printed.find("# environment MOETIER_WORKER_SLOTS"), std::string::npos);
  EXPECT_NE(printed.find("# flag --log-level"), std::string::npos);
}

TEST(loader, takes_back_what_it_prints) {
  const layer first[] = {yaml("worker:\n  slots: 7\nrestart:\n  budget: 9 in 1m\n")};
  const auto once = load(first);
  ASSERT_TRUE(once);
  const layer second[] = {yaml(print_yaml(*once))};
  const auto twice = load(second);
  ASSERT_TRUE(twice) << twice.error().text;
  for (const key_row& row : key_table()) {
    EXPECT_EQ(row.show(once->values), row.show(twice->values)) << row.key;
  }
}

TEST(loader, a_file_that_begins_with_a_comma_is_refused) {
  EXPECT_EQ(yaml_error(","), "tier.yaml is malformed: it holds more than one document");
  EXPECT_EQ(yaml_error("[]"), "tier.yaml:1 is malformed: it must be a mapping of sections");
}

TEST(loader, aliases_reach_no_further_than_settings_do) {
  EXPECT_EQ(yaml_error("a: &x\n  b: *x\n"),
            "tier.yaml:2 is malformed: setting a.b.b must have one plain value");
  const layer shared[] = {yaml("worker:\n  slots: &n 4\n  threads: *n\n")};
  EXPECT_EQ(load(shared)->values.worker.threads, 4U);
  // 100 KiB of text, twenty times.
  std::string text = "a: {b: &t " + std::string(100 * 1024, 'x');
  for (int i = 0; i < 20; ++i) text += ", c" + std::to_string(i) + ": *t";
  EXPECT_EQ(yaml_error(text + "}"),
            "tier.yaml:1 is malformed: with its aliases the file holds more than 1 MiB of settings");
  text = "security: {administrators: [&t " + std::string(100 * 1024, 'x');
  for (int i = 0; i < 20; ++i) text += ", *t";
  EXPECT_EQ(yaml_error(text + "]}"),
            "tier.yaml:1 is malformed: with its aliases the file holds more than 1 MiB of settings");
}

constexpr const char* k_tenants =
    "tenants:\n"
    "  - match: blue\n"
    "    weight: 4\n"
    "    class: prefill\n"
    "    sessions: 3\n"
    "    tokens_in_flight: 8192\n"
    "    tokens_per_second: 100000\n"
    "    models: [demo, other]\n"
    "  - match: '*'\n";

TEST(loader, reads_tenants_from_file_environment_and_flags) {
  const auto variables = read_environment(std::vector<std::string>{
      "MOETIER_TENANTS_1_TOKENS_PER_SECOND=500", "MOETIER_TENANTS_0_WEIGHT=5"});
  ASSERT_TRUE(variables);
  const layer layers[] = {
      yaml(k_tenants), *variables, {{"tenants[0].sessions", "2", "flag --set"}}};
  const auto l = load(layers);
  ASSERT_TRUE(l) << l.error().text;
  ASSERT_EQ(l->values.tenants.size(), 2u);
  const tenant_settings& blue = l->values.tenants[0];
  EXPECT_EQ(blue.match, "blue");
  EXPECT_EQ(blue.weight, 5u);
  EXPECT_EQ(blue.highest, deadline_class::prefill);
  EXPECT_EQ(blue.sessions, 2u);
  EXPECT_EQ(blue.tokens_in_flight, 8192u);
  EXPECT_EQ(blue.tokens_per_second, 100'000u);
  EXPECT_EQ(blue.models, (std::vector<std::string>{"demo", "other"}));
  EXPECT_EQ(l->values.tenants[1].match, "*");
  EXPECT_EQ(l->values.tenants[1].tokens_per_second, 500u);

  const std::string printed = print_yaml(*l);
  EXPECT_NE(printed.find("# environment MOETIER_TENANTS_0_WEIGHT"), std::string::npos) << printed;
  const layer again[] = {yaml(printed)};
  const auto twice = load(again);
  ASSERT_TRUE(twice) << twice.error().text;
  EXPECT_EQ(print_yaml(*twice).substr(0, 40), printed.substr(0, 40));
  ASSERT_EQ(twice->values.tenants.size(), 2u);
  EXPECT_EQ(twice->values.tenants[0].models, blue.models);
  EXPECT_EQ(twice->values.tenants[1].tokens_per_second, 500u);
}

TEST(loader, refuses_a_wrong_tenant_with_its_place) {
  EXPECT_EQ(load_error("tenants:\n  - match: a\n    wieght: 2\n"),
            "tier.yaml:3: unknown setting tenants[0].wieght; did you mean tenants[0].weight?");
  EXPECT_EQ(load_error("tenants:\n  - match: a\n    weight: 0\n"),
            "tier.yaml:3: setting tenants[0].weight is '0'; allowed: 1 to 1000");
  EXPECT_EQ(load_error("tenants:\n  - match: a\n    class: urgent\n"),
            "tier.yaml:3: setting tenants[0].class is 'urgent'; allowed: decode, prefill or batch");
  EXPECT_EQ(load_error("tenants:\n  - match: a\n    may_degrade: true\n"),
            "tier.yaml:3: setting tenants[0].may_degrade is 'true'; allowed: false; true is not "
            "enabled");
  EXPECT_EQ(load_error("tenants:\n  - weight: 2\n"),
            "tier.yaml:2: setting tenants[0].match is not set; allowed: a name for every tenant of "
            "the list");
  EXPECT_EQ(
      load_error("tenants:\n  - match: a\n  - match: a\n"),
      "tier.yaml:3: setting tenants[1].match is 'a'; allowed: a name that is not tenants[0]'s "
      "already");
  EXPECT_EQ(yaml_error("tenants:\n  match: a\n"),
            "tier.yaml:2 is malformed: tenants must be a list of mappings");
  EXPECT_EQ(yaml_error("tenants:\n  - match: a\n    match: b\n"),
            "tier.yaml:3 is malformed: key match stands twice");
  const auto late = read_environment(std::vector<std::string>{"MOETIER_TENANTS_2_MATCH=c"});
  ASSERT_TRUE(late);
  const layer layers[] = {*late};
  const auto l = load(layers);
  ASSERT_FALSE(l);
  EXPECT_EQ(l.error().text,
            "environment MOETIER_TENANTS_2_MATCH: setting tenants[0].match is not set; allowed: a "
            "name for every tenant of the list");
}

TEST(loader, every_default_is_a_legal_value_of_its_key) {
  for (const key_row& row : key_table()) {
    settings s;
    const std::string text = row.show(s);
    if (!text.empty()) {
      EXPECT_TRUE(row.put(s, text)) << row.key << " " << text;
    }
    EXPECT_EQ(row.show(s), text) << row.key;
    EXPECT_FALSE(row.put(s, "")) << row.key;
  }
}

TEST(loader, an_unknown_key_names_place_and_nearest) {
  EXPECT_EQ(load_error("log:\n  level: info\nworker:\n  slotz: 4\n"),
            "tier.yaml:4: unknown setting worker.slotz; did you mean worker.slots?");
  EXPECT_EQ(load_error("workers:\n  slots: 4\n"),
            "tier.yaml:2: unknown setting workers.slots; did you mean worker.slots?");
}

TEST(loader, a_wrong_type_or_range_names_place_value_and_what_is_allowed) {
  EXPECT_EQ(load_error("worker:\n  slots: many\n"),
            "tier.yaml:2: setting worker.slots is 'many'; allowed: auto or 1 to 1024");
  EXPECT_EQ(load_error("worker:\n  slots: 1025\n"),
            "tier.yaml:2: setting worker.slots is '1025'; allowed: auto or 1 to 1024");
  EXPECT_EQ(load_error("detect:\n  heartbeat: 100\n"),
            "tier.yaml:2: setting detect.heartbeat is '100'; allowed: 10ms to 10s");
  EXPECT_EQ(load_error("gateway:\n  enabled: yes\n"),
            "tier.yaml:2: setting gateway.enabled is 'yes'; allowed: true or false");
  EXPECT_EQ(load_error("http:\n  listen: 7402\n"),
            "tier.yaml:2: setting http.listen is '7402'; allowed: host:port");
  EXPECT_EQ(load_error("worker:\n  threads: 010\n"),
            "tier.yaml:2: setting worker.threads is '010'; allowed: 1 to 256");
  EXPECT_EQ(load_error("worker:\n  device: cuda:64\n"),
            "tier.yaml:2: setting worker.device is 'cuda:64'; allowed: auto, cpu, cuda or cuda:N "
            "with N below 64");
}

TEST(loader, keys_that_belong_together_are_checked_together) {
  EXPECT_EQ(load_error("detect:\n  heartbeat: 200ms\n"),
            "default: setting detect.timeout is '500ms'; allowed: at least 4 heartbeats of 200ms");
  EXPECT_EQ(load_error("detect:\n  heartbeat: 200ms\n  timeout: 800ms\n"), "(accepted)");
}

TEST(loader, nothing_listens_beyond_loopback) {
  EXPECT_EQ(load_error("coordinator:\n  control_listen: 0.0.0.0:7401\n"),
            "tier.yaml:2: setting coordinator.control_listen is '0.0.0.0:7401'; allowed: host:port "
            "on loopback, or certificates (security.control)");
  EXPECT_NE(load_error("coordinator:\n  rpc_listen: 10.0.0.1:7400\n"), "(accepted)");
  EXPECT_NE(load_error("http:\n  listen: 0.0.0.0:7402\n"), "(accepted)");
  EXPECT_NE(load_error("transport:\n  listen: 0.0.0.0\n"), "(accepted)");
}

TEST(loader, certificates_open_their_own_link_beyond_loopback_and_no_other) {
  const std::string rpc = "security:\n  rpc: {cert: c, key: k, ca: a}\n";
  const std::string control = "security:\n  control: {cert: c, key: k, ca: a}\n";
  const std::string rpc_public = "coordinator:\n  rpc_listen: 10.0.0.1:7400\n";
  const std::string control_public = "coordinator:\n  control_listen: 10.0.0.1:7401\n";
  const std::string worker_public = "worker:\n  coordinator: 10.0.0.1:7401\n";
  EXPECT_EQ(load_error(rpc + rpc_public), "(accepted)");
  EXPECT_NE(load_error(rpc + control_public), "(accepted)");
  EXPECT_NE(load_error(rpc + worker_public), "(accepted)");
  EXPECT_EQ(load_error(control + control_public), "(accepted)");
  EXPECT_EQ(load_error(control + worker_public), "(accepted)");
  EXPECT_NE(load_error(control + rpc_public), "(accepted)");
  EXPECT_NE(load_error(rpc + "http:\n  listen: 10.0.0.1:7402\n"), "(accepted)");
}

TEST(loader, the_clear_may_be_asked_for_but_never_for_actors) {
  const auto insecure = [](const char* what, const char* rest) {
    return load_error(std::string("security:\n  insecure: ") + what + "\n" + rest);
  };
  EXPECT_EQ(insecure("rpc", "coordinator:\n  rpc_listen: 10.0.0.1:7400\n"), "(accepted)");
  EXPECT_NE(insecure("http", "coordinator:\n  rpc_listen: 10.0.0.1:7400\n"), "(accepted)");
  EXPECT_EQ(insecure("[rpc, http]", "http:\n  listen: 10.0.0.1:7402\n"), "(accepted)");
  EXPECT_NE(insecure("[rpc, http]", "coordinator:\n  control_listen: 10.0.0.1:7401\n"),
            "(accepted)");
  EXPECT_EQ(insecure("control", ""),
            "tier.yaml:2: setting security.insecure is 'control'; allowed: rpc, http or both by a "
            "comma");
}

TEST(loader, a_link_has_all_of_its_files_or_none) {
  EXPECT_EQ(load_error("security:\n  rpc:\n    cert: c\n    ca: a\n"),
            "tier.yaml:4: setting security.rpc.key is not set; allowed: a file, as security.rpc.ca "
            "has one");
}

TEST(loader, administrators_may_be_a_list) {
  const layer layers[] = {yaml("security:\n  administrators: [ops, 'on call']\n")};
  const auto l = load(layers);
  ASSERT_TRUE(l);
  EXPECT_EQ(l->values.security.administrators, "ops,on call");
}

TEST(yaml, a_doubled_key_or_section_is_refused) {
  EXPECT_EQ(yaml_error("log:\n  level: info\n  level: warn\n"),
            "tier.yaml:3 is malformed: key level stands twice");
  EXPECT_EQ(yaml_error("log:\n  level: info\nlog:\n  level: warn\n"),
            "tier.yaml:3 is malformed: key log stands twice");
}

TEST(yaml, only_sections_of_plain_values_are_taken) {
  EXPECT_EQ(yaml_error("- a\n- b\n"), "tier.yaml:1 is malformed: it must be a mapping of sections");
  EXPECT_EQ(yaml_error("log: info\n"),
            "tier.yaml:1 is malformed: a section must be a mapping of settings");
  EXPECT_EQ(yaml_error("log:\n  level: [a, b]\n"),
            "tier.yaml:2 is malformed: setting log.level must have one plain value");
  EXPECT_EQ(yaml_error("log:\n  level:\n"),
            "tier.yaml:2 is malformed: setting log.level must have one plain value");
  EXPECT_EQ(yaml_error("log:\n  level: info\n---\nlog:\n  level: warn\n"),
            "tier.yaml is malformed: it holds more than one document");
  EXPECT_EQ(yaml_error("log: {level: info\n").substr(0, 26), "tier.yaml:2 is malformed: ");
  EXPECT_EQ(yaml_error(""), "(accepted)");
  EXPECT_EQ(yaml_error("# nothing yet\n"), "(accepted)");
}

TEST(yaml, a_file_that_is_not_there_says_so) {
  const auto l = read_yaml_file("/nowhere/tier.yaml");
  ASSERT_FALSE(l);
  EXPECT_EQ(l.error().why, reason::file_unreadable);
}

TEST(environment, a_misspelt_variable_of_a_section_is_refused) {
  EXPECT_EQ(
      environment_error({"MOETIER_WORKER_SLOTZ=4"}),
      "environment: unknown setting MOETIER_WORKER_SLOTZ; did you mean MOETIER_WORKER_SLOTS?");
}

TEST(environment, variables_that_kubernetes_makes_are_left_alone) {
  EXPECT_EQ(
      environment_error({"MOETIER_COORDINATOR_SERVICE_HOST=10.0.0.1",
                         "MOETIER_COORDINATOR_PORT=tcp://10.0.0.1:7400",
                         "MOETIER_COORDINATOR_PORT_7400_TCP_ADDR=10.0.0.1", "MOETIER_FULL=1"}),
      "(accepted)");
}

}  // namespace
}  // namespace moetier::config
