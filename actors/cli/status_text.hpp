#pragma once
// The status document for people. What `degraded` says stands in the document's resolution: it
// names what was asked for and what runs instead. With an earlier document rates are shown too.
// Thread: any (pure functions).

#include <optional>
#include <string>
#include <string_view>

namespace moetier::cli {

struct earlier_status {
  std::string document;
  double seconds_ago = 0;  // > 0
};

// Tier, workers, sessions, rows of each layer by worker; empty for a text that is no JSON object.
std::string status_text(std::string_view document,
                        const std::optional<earlier_status>& earlier = std::nullopt);
// The newest events, at most so many, one a line.
std::string events_text(std::string_view document, std::size_t count);
// One line for where lines are all there is.
std::string status_line(std::string_view document, const std::optional<earlier_status>& earlier);

}  // namespace moetier::cli
