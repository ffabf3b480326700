#pragma once
// What of an error a client may read. Most sentences hold numbers, glossary ids and the caller's
// own values; those about this machine (its files, addresses, devices, libraries) stay in its log
// and leave as a fixed sentence with the request's number. Thread: any (pure functions).

#include "schemas/base/error.hpp"

namespace moetier::coordinator {

// Whether a reason's sentence is made of what a client may read.
bool may_leave(reason why) noexcept;
error outward(const error& what, std::uint64_t request);

}  // namespace moetier::coordinator
