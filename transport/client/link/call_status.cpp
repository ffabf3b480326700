#include "transport/client/link/call_status.hpp"

#include <algorithm>
#include <string>

#include <fmt/core.h>

#include "schemas/base/assert.hpp"
#include "transport/client/link/limits.hpp"

namespace moetier::client {
namespace {

kj::StringPtr text_of(const std::string& s) { return {s.c_str(), s.size()}; }

reason reason_named(std::string_view name) {
  for (std::uint16_t i = 0; i <= static_cast<std::uint16_t>(reason::internal_error); ++i) {
    if (reason_name(static_cast<reason>(i)) == name) return static_cast<reason>(i);
  }
  return reason::internal_error;  // of a newer server: its status and sentence still hold
}

}  // namespace

void write_ok(rpc::Status::Builder to, std::uint64_t request_id) {
  to.setCode(static_cast<std::uint8_t>(status::ok));
  to.setReason("none");
  to.setRequestId(request_id);
}

void write_error(rpc::Status::Builder to, const error& what, std::uint64_t request_id) {
  MOETIER_ASSERT(what.code != status::ok);
  to.setCode(static_cast<std::uint8_t>(what.code));
  to.setReason(text_of(std::string(reason_name(what.why))));
  to.setMessage(text_of(what.text));
  to.setRetryable(is_retryable(what.code));
  to.setRetryAfterNs(what.retry_after_ns);
  to.setRequestId(request_id);
}

expected<void> read_status(rpc::Status::Reader from) {
  if (from.getCode() == static_cast<std::uint8_t>(status::ok)) return {};
  error e;
  e.code = static_cast<status>(from.getCode());
  if (status_name(e.code) == "UNKNOWN") e.code = status::internal;
  e.why = reason_named(std::string_view(from.getReason().cStr(), from.getReason().size()));
  e.text = std::string(from.getMessage().cStr(), from.getMessage().size());
  e.request_id = from.getRequestId();
  e.retry_after_ns = from.getRetryAfterNs();
  return unexpected_error(std::move(e));
}

expected<duration_ns> check_call(rpc::Call::Reader call, const char* name) {
  if (call.getProtocol() < k_rpc_protocol_min || call.getProtocol() > k_rpc_protocol_max) {
    return fail(reason::protocol_version, call.getProtocol(),
                k_rpc_protocol_min == k_rpc_protocol_max
                    ? fmt::format("{}", k_rpc_protocol_max)
                    : fmt::format("{} to {}", k_rpc_protocol_min, k_rpc_protocol_max));
  }
  if (call.getDeadlineNs() == 0) return fail(reason::deadline_missing, name);
  return std::min(call.getDeadlineNs(), k_deadline_max);
}

void write_call(rpc::Call::Builder to, std::uint64_t client, std::uint64_t request,
                duration_ns limit) {
  to.setProtocol(k_rpc_protocol_max);
  to.setClientId(client);
  to.setRequestId(request);
  to.setDeadlineNs(std::max<duration_ns>(limit, 1));
}

}  // namespace moetier::client
