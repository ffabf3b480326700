#include "workers/device/device_bill.hpp"

#include <fmt/core.h>

namespace moetier::workers {

expected<void> check_bill(const device_bill& bill, std::size_t available_bytes) {
  if (bill.total() <= available_bytes) return {};
  return fail(reason::memory_insufficient,
              fmt::format("the device (pages {}, workspace {}, calls {})", bill.pages,
                          bill.workspace, bill.calls),
              bill.total(), available_bytes);
}

}  // namespace moetier::workers
