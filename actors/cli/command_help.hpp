#pragma once
// What `moetier COMMAND --help` says beside the flags: what the command is for, an example that
// works as it stands, and what all commands share. One table; the parser adds it to every command,
// and a test walks them all. Thread: any (constants).

#include <string>
#include <string_view>

namespace moetier::cli {

struct command_help {
  std::string_view path;     // "placement show"; "" = moetier itself
  std::string_view purpose;  // below the short line
  std::string_view example;  // command lines, each with its two spaces
};

// nullptr: no such command.
const command_help* help_of(std::string_view path) noexcept;

std::string_view exit_codes_text() noexcept;

}  // namespace moetier::cli
