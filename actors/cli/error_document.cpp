#include "actors/cli/error_document.hpp"

#include <nlohmann/json.hpp>

namespace moetier::cli {

std::string error_document(const error& e) {
  using json = nlohmann::ordered_json;
  const json document{{"schema", "moetier.error/1"},
                      {"status", std::string(status_name(e.code))},
                      {"reason", std::string(reason_name(e.why))},
                      {"text", e.text}};
  // A sentence may hold the caller's own bytes, which need not be UTF-8.
  return document.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace moetier::cli
