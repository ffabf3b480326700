#pragma once
// One small HTTP GET by address, without names, redirects or encryption: for asking another process
// of this tier for one of its pages. Thread: any.

#include <optional>

#include "actors/config/endpoint.hpp"
#include "actors/http/http_answer.hpp"
#include "schemas/base/time.hpp"

namespace moetier::http {

// Nothing when nobody answered within the limit. The body: at most 4 MiB of it.
std::optional<http_answer> http_get(const config::endpoint& at, const char* path,
                                    duration_ns limit);

}  // namespace moetier::http
