#include <cstdio>

#include <fmt/core.h>

#include "actors/cli/commands.hpp"
#include "actors/cli/tier_address.hpp"
#include "transport/client/link/tier_link.hpp"

namespace moetier::cli {

expected<exit_code> run_log_level(const command_line& line) {
  auto link = reach_for_change(line, line.timeout);
  if (!link) return tl::unexpected(link.error());
  const auto done = (*link)->set_log_level(line.log_level, line.timeout);
  if (!done) return tl::unexpected(done.error());
  std::fputs(
      (line.json ? fmt::format("{{\"schema\":\"moetier.log_level/1\",\"level\":\"{}\"}}\n",
                               line.log_level)
                 : fmt::format("log level {} of the coordinator and its workers\n", line.log_level))
          .c_str(),
      stdout);
  return exit_code::done;
}

}  // namespace moetier::cli
