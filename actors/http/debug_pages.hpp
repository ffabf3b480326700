#pragma once
// Pages for whoever looks for a fault: one JSON document each, with its schema's name, for callers
// of this machine alone. Thread: any.

#include <functional>
#include <string>

#include "actors/http/http_server.hpp"
#include "schemas/base/error.hpp"

namespace moetier::http {

// /debug/NAME. An error is 503 and its sentence: there is nothing to show yet.
page debug_page(std::string_view name, std::function<expected<std::string>()> document);

}  // namespace moetier::http
