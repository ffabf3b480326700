// The words of a command line, one a line.

#include "actors/cli/command_line.hpp"

#include <iostream>

#include "tests/fuzz/fuzz_target.hpp"

namespace moetier::fuzz {
namespace {

constexpr std::size_t k_words_max = 64;

input words(std::initializer_list<std::string_view> all) {
  input text;
  for (const std::string_view word : all) {
    if (!text.empty()) text.push_back('\n');
    text.insert(text.end(), word.begin(), word.end());
  }
  return text;
}

}  // namespace

void run(std::span<const std::uint8_t> bytes) {
  static const bool quiet = [] {  // help and refusals are printed
    std::cout.setstate(std::ios::failbit);
    std::cerr.setstate(std::ios::failbit);
    return true;
  }();
  check(quiet, "the streams are not quiet");
  std::vector<std::string> given{"moetier", ""};
  for (const std::uint8_t b : bytes) {
    if (b == '\n' && given.size() < k_words_max) {
      given.emplace_back();
    } else if (b != 0) {  // a word ends there
      given.back() += static_cast<char>(b);
    }
  }
  std::vector<const char*> pointers;
  for (const std::string& word : given) pointers.push_back(word.c_str());
  const int count = static_cast<int>(pointers.size());
  cli::wants_json(count, pointers.data());
  const auto parsed = cli::parse_command_line(count, pointers.data());
  if (const auto* line = std::get_if<cli::command_line>(&parsed)) {
    check(line->timeout > 0, "a command without time");
    check(line->forward.micro_batches >= 1 && line->forward.micro_batches <= 4,
          "micro-batches beyond their range");
  }
}

std::vector<input> seeds() {
  return {
      words({"up", "--model", "/m", "--workers", "3", "--rpc-port", "7500", "--set",
             "restart.budget=9 in 1m", "-o", "json"}),
      words({"status", "--watch", "--interval", "200ms", "--address", "h:1"}),
      words({"placement", "heatmap", "--layer", "3", "--top", "5"}),
      words({"forward", "--layer", "0", "--in", "a", "--out", "b", "--via", "direct",
             "--micro-batches", "2", "--tolerance", "1e-3", "--check"}),
      words({"bench", "tier", "--load", "zipf:1.5", "--repeat", "10"}),
      words({"bench", "kernels", "--part", "cpu", "--rows", "1,64", "--shape", "2048x768"}),
      words({"resolve", "--model", "/m", "--force", "backend=x", "--environment", "e.json"}),
      words({"plan", "--loads", "l.csv", "--workers", "4", "-h"}),
      words({"adapters", "load", "n", "/d", "--timeout", "1m"}),
      words({"doctor", "--peers", "h:1,i:2"}),
      words({"forward", "--layer", "0", "--in", "a", "--out", "b", "--micro-batches", "0"}),
      words({"log-level", "debug", "--version"}),
  };
}

}  // namespace moetier::fuzz
