#pragma once
// One small HTTP GET on loopback, for asking /readyz of a child. Thread: any.

#include <optional>

#include "actors/config/endpoint.hpp"
#include "schemas/base/time.hpp"

namespace moetier::up {

// The answer's code; nothing when nobody answered within the limit.
std::optional<int> http_get_code(const config::endpoint& at, const char* path, duration_ns limit);

}  // namespace moetier::up
