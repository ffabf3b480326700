#include "coordinator/resolution/answers.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace moetier::coordinator {

using resolution::possibility;
using resolution::reject_reason;
using resolution::rejection;
using resolution::verdict;

void answers::add(const std::string& worker, const verdict& v, bool offline) {
  if (v.eligible()) return;
  if (v.abstains() && offline) {
    const auto same = std::find_if(possible_.begin(), possible_.end(),
                                   [&](const possibility& p) { return p.unknown == v.unknown; });
    if (same != possible_.end()) {
      same->workers.push_back(worker);
    } else {
      possible_.push_back({candidate_, v.unknown, {worker}});
    }
    return;
  }
  const reject_reason why = v.abstains() ? reject_reason::not_proven : v.why;
  const std::string detail =
      v.abstains() ? fmt::format("unknown: {}", fmt::join(v.unknown, ", ")) : v.detail;
  const auto same = std::find_if(rejected_.begin(), rejected_.end(), [&](const rejection& r) {
    return r.why == why && r.detail == detail;
  });
  if (same != rejected_.end()) {
    same->workers.push_back(worker);
  } else {
    rejected_.push_back({candidate_, why, detail, {worker}});
  }
}

void answers::add_everywhere(const resolution_request& request, reject_reason why,
                             const std::string& detail) {
  for (const auto& worker : request.workers)
    add(worker.worker, verdict::no(why, detail), request.offline);
}

void answers::add_history(const resolution_request& request) {
  for (const prepare_failure& f : request.failures) {
    if (f.candidate == candidate_)
      add_everywhere(request, reject_reason::prepare_failed,
                     fmt::format("{} could not prepare it: {}", f.worker, f.detail));
  }
  for (const resting_candidate& r : request.resting) {
    if (r.candidate == candidate_) add_everywhere(request, reject_reason::quarantined, r.detail);
  }
}

void answers::tell(std::vector<rejection>& rejected, std::vector<possibility>& possible) const {
  rejected.insert(rejected.end(), rejected_.begin(), rejected_.end());
  if (rejected_.empty()) possible.insert(possible.end(), possible_.begin(), possible_.end());
}

}  // namespace moetier::coordinator
