#pragma once
// What a worker takes of a device, known before anything is allocated. Thread: any (values).

#include <cstddef>

#include "schemas/base/error.hpp"

namespace moetier::workers {

struct device_bill {
  std::size_t pages = 0;      // weights and spare pages
  std::size_t workspace = 0;  // of the kernels
  std::size_t calls = 0;      // rows, tables and results of one call

  std::size_t total() const noexcept { return pages + workspace + calls; }
  bool operator==(const device_bill&) const = default;
};

// reason::memory_insufficient with both numbers and the parts.
expected<void> check_bill(const device_bill& bill, std::size_t available_bytes);

}  // namespace moetier::workers
