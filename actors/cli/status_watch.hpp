#pragma once
// `moetier status --watch`: the status again and again until Ctrl-C. On a terminal it is one
// picture that changes in place and fits the window; elsewhere a line, or with -o json a document,
// each time. A coordinator that does not answer is said, and asked again. Thread: owner (main).

#include <cstddef>
#include <string>
#include <string_view>

#include "actors/cli/command_line.hpp"
#include "schemas/base/error.hpp"
#include "transport/client/link/tier_link.hpp"

namespace moetier::cli {

expected<exit_code> watch_status(const command_line& line, client::tier_link& link);

// What a terminal of this size is told, so that it shows the first lines of `text` and nothing of
// an earlier picture: no line wraps, none scrolls, and no byte of a name moves its cursor. Pure.
std::string terminal_frame(std::string_view text, std::size_t rows, std::size_t columns);

}  // namespace moetier::cli
