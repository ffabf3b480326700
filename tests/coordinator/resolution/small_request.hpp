#pragma once
// A request that resolves: two equal workers of one kind, separate processes, nothing asked for.

#include <string>
#include <vector>

#include "coordinator/resolution/resolve.hpp"
#include "tests/schemas/resolution/small_values.hpp"

namespace moetier::coordinator {

inline resolution_request small_request(
    const resolution::environment& machine = resolution::cpu_machine()) {
  resolution_request r;
  r.what = resolution::small_problem();
  r.where = resolution::small_deployment();
  r.workers = {{"worker@1", machine}, {"worker@2", machine}};
  return r;
}

// "reason: detail (workers)" of a backend or carrier; "" if it was not rejected.
inline std::string rejection_of(const std::vector<resolution::rejection>& all,
                                const std::string& candidate) {
  std::string text;
  for (const resolution::rejection& r : all) {
    if (r.candidate != candidate) continue;
    text += text.empty() ? "" : " | ";
    text += std::string(reject_name(r.why)) + ": " + r.detail + " (";
    for (const std::string& w : r.workers) text += (w == r.workers.front() ? "" : ",") + w;
    text += ")";
  }
  return text;
}

}  // namespace moetier::coordinator
