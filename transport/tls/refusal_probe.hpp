#pragma once
// Knocks at a TLS address as those would who have no business there: without a certificate, and
// with a protocol older than TLS 1.3. A listener that a library of others' makes is believed only
// after both were turned away. Blocks, within a limit. Thread: any.

#include <cstdint>
#include <string>

#include "schemas/base/error.hpp"
#include "schemas/base/time.hpp"

namespace moetier::tls {

// A value when both were refused; `host` is a numeric address of this machine. reason::not_enabled
// says which of them was let in, or that nobody answered.
expected<void> probe_refusals(const std::string& host, std::uint16_t port, duration_ns limit);

}  // namespace moetier::tls
