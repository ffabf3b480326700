#include <CLI/CLI.hpp>

#include "actors/cli/help_formatter.hpp"

#include <sstream>

#include <fmt/core.h>

#include "actors/cli/command_help.hpp"

namespace moetier::cli {
namespace {

constexpr std::size_t k_text_column = 32;
constexpr std::size_t k_width = 100;

// "placement show"; "" for moetier itself.
std::string path_of(const CLI::App& command) {
  if (command.get_parent() == nullptr) return {};
  const std::string above = path_of(*command.get_parent());
  return above.empty() ? command.get_name() : above + " " + command.get_name();
}

std::string wrapped(const std::string& text, std::size_t width) {
  std::istringstream words(text);
  std::string out;
  std::size_t column = 0;
  for (std::string word; words >> word;) {
    const bool fits = column == 0 || column + 1 + word.size() <= width;
    if (!fits) column = 0;
    out += !fits ? "\n" : column == 0 ? "" : " ";
    column += (column == 0 ? 0 : 1) + word.size();
    out += word;
  }
  return out;
}

}  // namespace

help_formatter::help_formatter() { column_width(k_text_column); }

std::string help_formatter::make_description(const CLI::App* command) const {
  const command_help* const help = help_of(path_of(*command));
  const std::string brief = command->get_description();
  return help == nullptr ? brief + "\n" : fmt::format("{}\n\n{}\n", brief, help->purpose);
}

std::string help_formatter::make_footer(const CLI::App* command) const {
  std::string out;
  const CLI::App* top = command;
  while (top->get_parent() != nullptr) top = top->get_parent();
  if (top != command) {
    out += "\nOptions of every command:\n";
    for (const CLI::Option* option : top->get_options()) {
      if (option != top->get_help_ptr()) out += make_option(option, false);
    }
  }
  if (const command_help* const help = help_of(path_of(*command)); help != nullptr) {
    out += fmt::format("\nExample:\n{}\n", help->example);
  }
  return out + fmt::format("\n{}\n", exit_codes_text());
}

std::string help_formatter::make_option(const CLI::Option* option, bool is_positional) const {
  std::stringstream out;
  CLI::detail::format_help(out, make_option_name(option, is_positional) + make_option_opts(option),
                           wrapped(make_option_desc(option), k_width - k_text_column),
                           column_width_);
  return out.str();
}

}  // namespace moetier::cli
