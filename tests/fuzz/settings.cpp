// Configuration: a YAML file, or the environment's variables (one a line), to settings. The first
// byte: 1 = variables. What loads must print as a file that loads to the same.

#include "actors/config/loader.hpp"

#include <string>

#include "actors/config/key_table.hpp"
#include "tests/fuzz/fuzz_target.hpp"

namespace moetier::fuzz {
namespace {

using namespace config;

expected<layer> read(std::span<const std::uint8_t> bytes) {
  const std::string_view text = text_of(bytes.subspan(1));
  if ((bytes[0] & 1) == 0) return read_yaml(text, "tier.yaml");
  std::vector<std::string> variables(1);
  for (const char c : text) {
    if (c == '\n') {
      variables.emplace_back();
    } else {
      variables.back() += c;
    }
  }
  return read_environment(variables);
}

input yaml(std::string_view text) {
  input seed;
  seed.reserve(1 + text.size());
  seed.push_back(0);
  seed.insert(seed.end(), text.begin(), text.end());
  return seed;
}

}  // namespace

void run(std::span<const std::uint8_t> bytes) {
  if (bytes.empty()) return;
  const auto given = read(bytes);
  if (!given) return;
  const layer layers[] = {*given};
  const auto settings = load(layers);
  if (!settings) return;
  print_json(*settings);
  const auto printed = read_yaml(print_yaml(*settings), "printed.yaml");
  check(printed.has_value(), "printed settings are no file");
  const layer again[] = {*printed};
  const auto loaded_again = load(again);
  check(loaded_again.has_value(), "printed settings do not load");
  check(print_yaml(*loaded_again).size() > 0, "settings print as nothing");
  for (const key_row& row : key_table()) {
    check(row.show(settings->values) == row.show(loaded_again->values),
          "a setting changes when it is printed and loaded");
  }
}

std::vector<input> seeds() {
  std::vector<input> all = {
      yaml("model:\n  path: /m\nworker:\n  slots: 4\n  memory: 8GiB\n"
           "detect:\n  heartbeat: 50ms\nrestart:\n  budget: 3 in 30s\n"),
      yaml("tenants:\n  - match: a\n    weight: 3\n    models: [x, y]\n"
           "  - match: \"*\"\n    sessions: 2\n"),
      yaml("log: {level: 'warn'}\ngateway:\n  enabled: false\n"
           "security:\n  insecure: rpc, http\n"),
      yaml("a: &x\n  b: *x\n--- \n!!int 3\n"),
      input_of("\1MOETIER_WORKER_SLOTS=5\nPATH=/bin\nMOETIER_LOG_LEVEL=warn\n"
               "MOETIER_TENANTS_0_WEIGHT=2\nMOETIER_TENANTS_0_MATCH=a"),
  };
  all.push_back(yaml(print_yaml(*load({}))));  // all keys with their defaults
  return all;
}

}  // namespace moetier::fuzz
