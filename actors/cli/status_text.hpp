#pragma once
// A tier's status document as people read it: where it stands, what it serves and with which
// backend and carrier, its workers and sessions. A member that the document lacks is left out.
// Thread: any (pure).

#include <string>
#include <string_view>

namespace moetier::cli {

// "" for a text that is no JSON object.
std::string status_text(std::string_view document);

}  // namespace moetier::cli
