#pragma once
// What a resolution is asked with: one problem, one deployment, every worker's environment as a
// value, and the operator's wishes. Candidates come in too, so that a test can bring its own.
// Thread: any (a value; the candidate tables must outlive it).

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/candidates/backend_candidate.hpp"
#include "schemas/resolution/agreement.hpp"
#include "schemas/resolution/deployment.hpp"
#include "schemas/resolution/problem.hpp"
#include "schemas/resolution/report.hpp"
#include "transport/candidates/carrier_candidate.hpp"

namespace moetier::coordinator {

// A candidate that a worker could not prepare; it is out for the whole tier.
struct prepare_failure {
  std::string candidate;  // identity of a backend or name of a carrier
  std::string worker;
  std::string detail;
};

// A candidate that failed in service and rests.
struct resting_candidate {
  std::string candidate;
  std::string detail;  // "until 60 s after its last failure"
};

struct resolution_request {
  resolution::problem what;
  resolution::deployment where;                        // holds the carrier that was asked for
  std::vector<resolution::named_environment> workers;  // one for each of where.workers
  // Hash of the problem that each worker made from its own checkpoint; empty = not reported.
  std::vector<std::uint64_t> problem_hashes;
  std::string backend = "AUTO";  // any case: AUTO, a family, or a candidate
  bool allow_degradation = true;
  // Whether abstaining counts as possible; else it is a rejection, not_proven.
  bool offline = false;
  std::vector<prepare_failure> failures;
  std::vector<resting_candidate> resting;
  resolution::routing_choice routing;  // copied into the report
  std::uint64_t epoch = 0;             // copied into the report
  std::span<const kernels::backend_candidate> backends = kernels::backend_candidates();
  std::span<const transport::carrier_candidate> carriers = transport::carrier_candidates();
};

}  // namespace moetier::coordinator
