#pragma once
// The bare UCX echo of the carrier's module, found and called: how long the library alone takes for
// messages of given sizes. Thread: owner.

#include <cstdint>
#include <vector>

#include "schemas/base/error.hpp"
#include "transport/ucx/echo.hpp"

namespace moetier::cli {

// Each measured round trip in nanoseconds; reason::carrier_unavailable where UCX or one of the
// wish's transports is not here.
expected<std::vector<std::uint64_t>> run_ucx_echo(const transport::echo_wish& wish);

}  // namespace moetier::cli
