#include <cstdio>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "actors/cli/commands.hpp"
#include "actors/cli/heatmap_document.hpp"
#include "actors/cli/tier_address.hpp"
#include "transport/client/link/tier_link.hpp"

namespace moetier::cli {

expected<exit_code> run_heatmap(const command_line& line) {
  auto link = reach(line, line.timeout);
  if (!link) return tl::unexpected(link.error());
  const auto text = (*link)->document(client::admin_document::experts, line.timeout);
  if (!text) return tl::unexpected(text.error());
  const auto map = heatmap_of(*text, line.heatmap);
  if (!map) return tl::unexpected(map.error());
  std::fputs((line.json ? map->dump() + "\n" : heatmap_text(*map)).c_str(), stdout);
  return exit_code::done;
}

}  // namespace moetier::cli
