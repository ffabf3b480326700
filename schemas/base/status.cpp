#include "schemas/base/status.hpp"

namespace moetier {

std::string_view status_name(status s) noexcept {
  switch (s) {
    case status::ok: return "OK";
    case status::pending: return "PENDING";
    case status::degraded: return "DEGRADED";
    case status::skipped: return "SKIPPED";
    case status::invalid: return "INVALID";
    case status::bad_state: return "BAD_STATE";
    case status::unsupported: return "UNSUPPORTED";
    case status::version: return "VERSION";
    case status::model_mismatch: return "MODEL_MISMATCH";
    case status::denied: return "DENIED";
    case status::timeout: return "TIMEOUT";
    case status::stale_generation: return "STALE_GENERATION";
    case status::unavailable: return "UNAVAILABLE";
    case status::overloaded: return "OVERLOADED";
    case status::cancelled: return "CANCELLED";
    case status::session_lost: return "SESSION_LOST";
    case status::corrupt: return "CORRUPT";
    case status::device: return "DEVICE";
    case status::no_memory: return "NO_MEMORY";
    case status::internal: return "INTERNAL";
  }
  return "UNKNOWN";
}

bool is_retryable(status s) noexcept {
  switch (s) {
    case status::skipped:
    case status::timeout:
    case status::stale_generation:
    case status::unavailable:
    case status::overloaded:
    case status::corrupt: return true;
    default: return false;
  }
}

}  // namespace moetier
