// Every `moetier COMMAND --help`, found by walking from the top: whoever adds a command without
// its purpose, example or flags' descriptions sees it here.

#include "actors/cli/command_help.hpp"

#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "actors/cli/command_line.hpp"

namespace moetier::cli {
namespace {

std::variant<command_line, exit_code> parse(const std::vector<std::string>& words) {
  std::vector<const char*> argv{"moetier"};
  for (const std::string& word : words) argv.push_back(word.c_str());
  return parse_command_line(static_cast<int>(argv.size()), argv.data());
}

std::string help_text(std::vector<std::string> words) {
  words.emplace_back("--help");
  testing::internal::CaptureStdout();
  const auto ended = parse(words);
  std::string text = testing::internal::GetCapturedStdout();
  EXPECT_TRUE(std::holds_alternative<exit_code>(ended));
  if (const auto* code = std::get_if<exit_code>(&ended)) {
    EXPECT_EQ(*code, exit_code::done);
  }
  return text;
}

// The lines of one section: "Subcommands:", "Options:".
std::vector<std::string> section(const std::string& text, const std::string& title) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  bool inside = false;
  for (std::string line; std::getline(in, line);) {
    if (line == title) {
      inside = true;
    } else if (inside && (line.empty() || line.front() != ' ')) {
      break;
    } else if (inside) {
      lines.push_back(line);
    }
  }
  return lines;
}

std::string first_word(const std::string& line) {
  std::istringstream in(line);
  std::string word;
  in >> word;
  return word;
}

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& w : words) out += (out.empty() ? "" : " ") + w;
  return out;
}

void check(const std::vector<std::string>& path, std::size_t& seen) {
  ++seen;
  const std::string text = help_text(path);
  SCOPED_TRACE("moetier " + joined(path) + " --help\n" + text);
  const command_help* const help = help_of(joined(path));
  ASSERT_NE(help, nullptr);
  EXPECT_NE(text.find(std::string(help->purpose)), std::string::npos);
  EXPECT_NE(text.find("Exit codes:\n   0  done\n"), std::string::npos);
  EXPECT_NE(text.find("  70  internal error"), std::string::npos);
  for (const char* flag : {"--address", "-o,--output", "--timeout", "--config", "--set",
                           "--print-config", "--quiet", "--version"}) {
    EXPECT_NE(text.find(flag), std::string::npos) << flag;
  }
  // A flag is told in one line or two, and what it means is not left out.
  const auto options = section(text, "Options:");
  for (std::size_t i = 0; i < options.size(); ++i) {
    if (!options[i].starts_with("  -")) continue;
    const bool here =
        options[i].size() > 32 && options[i].find_first_not_of(' ', 31) != std::string::npos;
    const bool below = i + 1 < options.size() && options[i + 1].starts_with(std::string(32, ' '));
    EXPECT_TRUE(here || below) << options[i];
  }
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    // What an option excludes is the parser's own list, which it does not break.
    if (line.find(" Excludes: ") == std::string::npos) {
      EXPECT_LE(line.size(), 110U) << line;
    }
  }
  for (const std::string& line : section(text, "Subcommands:")) {
    if (line.starts_with("   ")) continue;  // a continued description
    std::vector<std::string> below = path;
    below.push_back(first_word(line));
    check(below, seen);
  }
}

TEST(command_help, every_command_says_what_it_is_for_its_flags_an_example_and_the_exit_codes) {
  std::size_t seen = 0;
  check({}, seen);
  EXPECT_GE(seen, 17U);  // it has walked
}

TEST(command_help, every_example_is_a_command_line_that_parses) {
  for (const char* path :
       {"", "up", "coordinator", "worker", "status", "placement", "placement show", "adapters",
        "adapters list", "adapters load", "adapters drop", "forward", "bench", "bench tier",
        "bench sessions", "bench wire", "bench kernels", "bench plan", "resolve", "plan", "doctor"}) {
    const command_help* const help = help_of(path);
    ASSERT_NE(help, nullptr) << path;
    std::istringstream lines{std::string(help->example)};
    for (std::string line; std::getline(lines, line);) {
      ASSERT_TRUE(line.starts_with("  moetier ")) << line;
      line = line.substr(
          10, line.find("  ", 10) == std::string::npos ? line.npos : line.find("  ", 10) - 10);
      line = line.substr(0, line.find(" > "));
      std::vector<std::string> words;
      std::istringstream in(line);
      for (std::string word; in >> word;) words.push_back(word);
      EXPECT_TRUE(std::holds_alternative<command_line>(parse(words))) << line;
    }
  }
}

TEST(command_help, flags_of_settings_tell_their_range_and_their_default) {
  std::istringstream in(help_text({"worker"}));
  std::string text;  // on one line, as the wrapping is another matter
  for (std::string word; in >> word;) text += word + " ";
  EXPECT_NE(text.find("(0 to 65536; default 8)"), std::string::npos) << text;  // --spare-pages
  EXPECT_NE(text.find("(a directory; not set)"), std::string::npos) << text;   // --model
}

}  // namespace
}  // namespace moetier::cli
