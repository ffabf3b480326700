#include "actors/cli/command_line.hpp"

#include <gtest/gtest.h>

namespace moetier::cli {
namespace {

std::variant<command_line, exit_code> parse(std::vector<const char*> words) {
  words.insert(words.begin(), "moetier");
  return parse_command_line(static_cast<int>(words.size()), words.data());
}

command_line accepted(std::vector<const char*> words) {
  auto parsed = parse(std::move(words));
  EXPECT_TRUE(std::holds_alternative<command_line>(parsed));
  return std::holds_alternative<command_line>(parsed) ? std::get<command_line>(parsed)
                                                      : command_line{};
}

exit_code refused(std::vector<const char*> words) {
  testing::internal::CaptureStderr();
  testing::internal::CaptureStdout();
  const auto parsed = parse(std::move(words));
  testing::internal::GetCapturedStdout();
  testing::internal::GetCapturedStderr();
  EXPECT_TRUE(std::holds_alternative<exit_code>(parsed));
  return std::holds_alternative<exit_code>(parsed) ? std::get<exit_code>(parsed) : exit_code::done;
}

TEST(command_line, flags_of_settings_become_entries_with_their_place) {
  const command_line l = accepted({"up", "--model", "/m", "--workers", "3", "--rpc-port", "7500",
                                   "--set", "restart.budget=9 in 1m", "-o", "json"});
  EXPECT_EQ(l.what, command::up);
  EXPECT_TRUE(l.json);
  ASSERT_EQ(l.flags.size(), 4U);
  bool port = false;
  bool budget = false;
  for (const config::entry& e : l.flags) {
    port |= e.key == "coordinator.rpc_listen" && e.value == "127.0.0.1:7500" &&
            e.place == "flag --rpc-port";
    budget |= e.key == "restart.budget" && e.value == "9 in 1m" && e.place == "flag --set";
  }
  EXPECT_TRUE(port);
  EXPECT_TRUE(budget);
}

TEST(command_line, global_flags_stand_on_either_side_of_the_command) {
  EXPECT_EQ(accepted({"--address", "h:1", "status"}).address, "h:1");
  EXPECT_EQ(accepted({"status", "--address", "h:1"}).address, "h:1");
  EXPECT_EQ(accepted({"placement", "show", "--address", "h:1"}).what, command::placement_show);
  EXPECT_EQ(accepted({"placement", "heatmap", "--layer", "3", "--top", "5"}).heatmap.layer, 3U);
  EXPECT_FALSE(accepted({"placement", "heatmap"}).heatmap.layer);
  EXPECT_EQ(accepted({"status", "--watch", "--interval", "200ms"}).watch.interval,
            200 * k_millisecond);
  EXPECT_EQ(refused({"status", "--interval", "2s"}), exit_code::usage);
  EXPECT_EQ(refused({"status", "--watch", "--interval", "1ms"}), exit_code::usage);
  EXPECT_EQ(accepted({"log-level", "debug"}).log_level, "debug");
  EXPECT_EQ(refused({"log-level", "loud"}), exit_code::usage);
  EXPECT_EQ(refused({"doctor", "--peers", "unix:/run/moetier.sock"}), exit_code::usage);
  EXPECT_EQ(refused({"doctor", "--peers", "there:0"}), exit_code::usage);
  EXPECT_EQ(accepted({"bench", "tier", "--repeat", "10"}).bench.calls, 10U);
  EXPECT_EQ(accepted({"bench", "tier", "--load", "zipf:1.5"}).bench.load.alpha, 1.5);
  EXPECT_EQ(refused({"bench", "tier", "--load", "even"}), exit_code::usage);
  EXPECT_EQ(accepted({"bench", "kernels", "--part", "routing"}).kernels.part, "routing");
  EXPECT_EQ(accepted({"bench", "kernels", "--seed", "7"}).kernels.seed, 7U);
  const auto device = accepted({"bench", "kernels", "--part", "device", "--shape", "qwen3",
                                "--format", "bf16", "--rows", "1,64", "--markdown"})
                          .kernels;
  EXPECT_EQ(device.shape, "qwen3");
  EXPECT_EQ(device.format, "bf16");
  EXPECT_EQ(device.rows, (std::vector<std::uint32_t>{1, 64}));
  EXPECT_TRUE(device.markdown);
}

TEST(command_line, benches_that_move_rows_take_lists_and_demands) {
  const auto tier = accepted({"bench", "tier", "--tokens", "1,16,256", "--workers", "1,2,3",
                              "--model", "/m", "--distribution", "zipf", "--seed", "5", "--assert",
                              "p50_us=20", "--assert", "own_share_echoes=4", "--markdown"});
  EXPECT_EQ(tier.what, command::bench_tier);
  EXPECT_EQ(tier.bench.tokens, (std::vector<std::uint32_t>{1, 16, 256}));
  EXPECT_EQ(tier.bench.workers, (std::vector<std::uint32_t>{1, 2, 3}));
  EXPECT_EQ(tier.bench.seed, 5U);
  EXPECT_EQ(tier.bench.load.what, load_wish::kind::zipf);
  EXPECT_TRUE(tier.bench.markdown);
  ASSERT_EQ(tier.bench.demands.size(), 2U);
  EXPECT_EQ(tier.bench.demands[1], (figure_demand{"own_share_echoes", 4}));
  ASSERT_EQ(tier.flags.size(), 1U);
  EXPECT_EQ(tier.flags[0].key, "model.path");
  EXPECT_EQ(accepted({"bench", "tier"}).bench.tokens, std::vector<std::uint32_t>{1});
  EXPECT_TRUE(accepted({"bench", "tier"}).bench.workers.empty());  // the running tier
  EXPECT_EQ(refused({"bench", "tier", "--tokens", "1,0"}), exit_code::usage);
  EXPECT_EQ(refused({"bench", "tier", "--workers", "65"}), exit_code::usage);
  EXPECT_EQ(refused({"bench", "tier", "--assert", "p50_us"}), exit_code::usage);

  const auto sessions = accepted({"bench", "sessions", "--sessions", "1,4", "--tokens", "8,256",
                                  "--workers", "1", "--steps", "7", "--assert", "cost=1.3"});
  EXPECT_EQ(sessions.what, command::bench_sessions);
  EXPECT_EQ(sessions.sessions.sessions, (std::vector<std::uint32_t>{1, 4}));
  EXPECT_EQ(sessions.sessions.tokens, (std::vector<std::uint32_t>{8, 256}));
  EXPECT_EQ(sessions.sessions.steps, 7U);
  EXPECT_EQ(sessions.sessions.demands, (std::vector<figure_demand>{{"cost", 1.3}}));
  EXPECT_EQ(refused({"bench", "sessions", "--sessions", "17"}), exit_code::usage);

  const auto wire = accepted({"bench", "wire", "--hidden", "256", "--rows", "1,16", "--mib", "0",
                              "--way", "shm,in_process", "--repeat", "9"});
  EXPECT_EQ(wire.what, command::bench_wire);
  EXPECT_EQ(wire.wire.hidden_size, 256U);
  EXPECT_EQ(wire.wire.rows, (std::vector<std::uint32_t>{1, 16}));
  EXPECT_EQ(wire.wire.ways, (std::vector<std::string>{"shm", "in_process"}));
  EXPECT_EQ(refused({"bench", "wire", "--way", "pigeon"}), exit_code::usage);
}

TEST(command_line, resolve_takes_repeated_environments_and_forced_parts) {
  const command_line l =
      accepted({"resolve", "--model", "/m", "--environment", "a", "--environment", "b", "--force",
                "backend=cpu", "--force", "communication=ucx", "--slots", "4", "--eplb", "off",
                "--no-degradation"});
  EXPECT_EQ(l.what, command::resolve);
  EXPECT_EQ(l.resolve.environments, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(l.resolve.forced, (std::vector<std::string>{"backend=cpu", "communication=ucx"}));
  EXPECT_EQ(l.resolve.slots, 4U);
  EXPECT_EQ(l.resolve.eplb, false);
  EXPECT_TRUE(l.resolve.no_degradation);
  EXPECT_TRUE(accepted({"resolve", "--capture"}).resolve.capture);
  for (const char* eplb : {"", "yes", "1"}) {
    EXPECT_EQ(refused({"resolve", "--model", "/m", "--eplb", eplb}), exit_code::usage) << eplb;
  }
}

TEST(command_line, adapters_are_listed_loaded_by_name_and_directory_and_dropped_by_name) {
  EXPECT_EQ(accepted({"adapters", "list"}).what, command::adapters_list);
  const command_line load = accepted({"adapters", "load", "red", "dir", "-o", "json"});
  EXPECT_EQ(load.what, command::adapters_load);
  EXPECT_EQ(load.adapter.name, "red");
  EXPECT_EQ(load.adapter.directory, "dir");
  EXPECT_TRUE(load.json);
  const command_line drop = accepted({"adapters", "drop", "red"});
  EXPECT_EQ(drop.what, command::adapters_drop);
  EXPECT_EQ(drop.adapter.name, "red");
  for (const auto& words : std::vector<std::vector<const char*>>{
           {"adapters"}, {"adapters", "load", "red"}, {"adapters", "drop"}, {"adapters", "x"}}) {
    EXPECT_EQ(refused(words), exit_code::usage);
  }
}

TEST(command_line, resolve_live_and_capture_take_nothing_that_describes_another_tier) {
  EXPECT_TRUE(accepted({"resolve", "--live", "--address", "h:1"}).resolve.live);
  const std::vector<std::vector<const char*>> offline{
      {"--model", "/m"},  {"--environment", "a"},     {"--workers", "2"},
      {"--tokens", "1"},  {"--slots", "4"},           {"--eplb", "on"},
      {"--force", "b=c"}, {"--return-mode", "exact"}, {"--no-degradation"}};
  for (const auto& words : offline) {
    for (const char* mode : {"--live", "--capture"}) {
      std::vector<const char*> line{"resolve", mode};
      line.insert(line.end(), words.begin(), words.end());
      testing::internal::CaptureStderr();
      const auto parsed = parse(line);
      const std::string said = testing::internal::GetCapturedStderr();
      EXPECT_NE(said.find(words.front()), said.npos) << said;
      EXPECT_NE(said.find(mode), said.npos) << said;
      ASSERT_TRUE(std::holds_alternative<exit_code>(parsed)) << mode << " " << words.front();
      EXPECT_EQ(std::get<exit_code>(parsed), exit_code::usage);
    }
  }
  EXPECT_EQ(refused({"resolve", "--live", "--capture"}), exit_code::usage);
}

TEST(command_line, values_that_are_none_are_usage_errors) {
  for (const char* address : {"x", "", "h:", "h:0", ":1", "h:70000"}) {
    EXPECT_EQ(refused({"status", "--address", address}), exit_code::usage) << address;
  }
  for (const char* layer : {"", "x", "-1", "65536"}) {
    EXPECT_EQ(refused({"forward", "--in", "a", "--out", "b", "--layer", layer}), exit_code::usage)
        << layer;
  }
}

// What it prints on standard output.
std::string printed(std::vector<const char*> words) {
  testing::internal::CaptureStderr();
  testing::internal::CaptureStdout();
  parse(std::move(words));
  testing::internal::GetCapturedStderr();
  return testing::internal::GetCapturedStdout();
}

TEST(command_line, json_is_one_document_for_errors_and_version_too) {
  for (const char* form : {"-ojson", "--output=json"}) {
    EXPECT_TRUE(
        printed({"status", form, "--nothing"})
            .starts_with(
                R"({"schema":"moetier.error/1","status":"INVALID","reason":"config_invalid","text":")"));
  }
  EXPECT_EQ(printed({"status", "--nothing"}), "");
  EXPECT_NE(printed({"--version", "-o", "json"}).find(R"("schema": "moetier.version/1")"),
            std::string::npos);
  EXPECT_TRUE(printed({"--version"}).starts_with("moetier "));
}

TEST(command_line, forward_knows_its_vocabulary) {
  const command_line l = accepted({"forward", "--layer", "3", "--in", "a", "--out", "b", "--via",
                                   "direct", "--return-mode", "exact", "--use", "ids",
                                   "--with-routing", "--check", "--micro-batches", "4"});
  EXPECT_EQ(l.forward.layer, 3U);
  EXPECT_TRUE(l.forward.direct && l.forward.with_routing && l.forward.check);
  EXPECT_EQ(l.forward.return_mode, "exact");
  EXPECT_EQ(l.forward.micro_batches, 4U);
}

TEST(command_line, a_timeout_without_a_unit_is_told_so) {
  const auto told = [](const char* text) {
    return printed({"status", "-o", "json", "--timeout", text});
  };
  EXPECT_NE(told("5").find("5 has no unit; e.g. 10s, 500ms"), std::string::npos) << told("5");
  EXPECT_NE(told("x").find("x is no duration; e.g. 10s, 500ms"), std::string::npos) << told("x");
}

TEST(command_line, an_unknown_command_is_named) {
  const auto told = [](std::vector<const char*> words) {
    words.insert(words.end(), {"-o", "json"});
    return printed(std::move(words));
  };
  EXPECT_NE(told({"frobnicate"}).find("no command is called frobnicate"), std::string::npos);
  EXPECT_NE(told({"placement", "shwo"}).find("no command is called shwo"), std::string::npos);
  EXPECT_NE(told({"placement"}).find("A subcommand is required"), std::string::npos);
  EXPECT_NE(told({"forward", "--in", "a"}).find("--layer is required"), std::string::npos);
}

TEST(command_line, misuse_is_2_and_help_is_0) {
  EXPECT_EQ(refused({}), exit_code::usage);
  EXPECT_EQ(refused({"--bogus"}), exit_code::usage);
  EXPECT_EQ(refused({"frobnicate"}), exit_code::usage);
  EXPECT_EQ(refused({"status", "-o", "xml"}), exit_code::usage);
  EXPECT_EQ(refused({"status", "--timeout", "10"}), exit_code::usage);
  EXPECT_EQ(refused({"forward", "--in", "a"}), exit_code::usage);
  EXPECT_EQ(refused({"forward", "--layer", "-1", "--in", "a"}), exit_code::usage);
  EXPECT_EQ(refused({"forward", "--layer", "1", "--in", "a", "--micro-batches", "5"}),
            exit_code::usage);
  EXPECT_EQ(refused({"worker", "--set", "no_equals"}), exit_code::usage);
  EXPECT_EQ(refused({"--help"}), exit_code::done);
  EXPECT_EQ(refused({"--version"}), exit_code::done);
}

}  // namespace
}  // namespace moetier::cli
