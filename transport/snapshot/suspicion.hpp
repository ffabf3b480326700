#pragma once
// Whom the coordinator suspects: workers in service that have not shown progress for a while. A
// hint for sources, which then prefer another replica; who is in service is the snapshot's matter.
// Immutable once made. Thread: any (a value).

#include <cstdint>
#include <memory>
#include <vector>

#include "schemas/base/ids.hpp"

namespace moetier::transport {

struct suspect {
  worker_id worker;
  incarnation_id incarnation;  // of the process that is meant; another one is not suspected
  bool operator==(const suspect&) const = default;
};

struct suspicion {
  std::uint64_t number = 0;  // names the set; differs between sets, also over a restart
  std::vector<suspect> workers;
  bool operator==(const suspicion&) const = default;
};

using suspicion_ptr = std::shared_ptr<const suspicion>;

}  // namespace moetier::transport
