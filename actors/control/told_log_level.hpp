#pragma once
// A threshold as the coordinator tells it, as a level of the log. Thread: any (pure).

#include "actors/log/event_log.hpp"
#include "schemas/control/messages.hpp"

namespace moetier::actors {

inline log_level log_level_of(control::log_threshold told, log_level configured) noexcept {
  switch (told) {
    case control::log_threshold::as_configured: return configured;
    case control::log_threshold::debug: return log_level::debug;
    case control::log_threshold::info: return log_level::info;
    case control::log_threshold::warn: return log_level::warn;
    case control::log_threshold::error: return log_level::error;
    case control::log_threshold::off: return log_level::off;
  }
  return configured;
}

}  // namespace moetier::actors
