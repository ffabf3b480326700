#pragma once
// How `--help` is laid out: what the command is for, its flags, the options of every command, an
// example, the exit codes; wrapped to a terminal's width. Thread: owner.

#include <string>

#include <CLI/App.hpp>
#include <CLI/Formatter.hpp>

namespace moetier::cli {

class help_formatter final : public CLI::Formatter {
 public:
  help_formatter();

 private:
  std::string make_description(const CLI::App* command) const override;
  std::string make_footer(const CLI::App* command) const override;
  std::string make_option(const CLI::Option* option, bool is_positional) const override;
};

}  // namespace moetier::cli
