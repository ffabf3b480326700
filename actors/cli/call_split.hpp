#pragma once
// Where the time of a call goes, from the caller's submit to its summed rows: parts that add up to
// the whole, as what no clock saw is a part too. The source's parts are its own times of each call.
// The time that rows were held by the worker that answered last, the critical path, is divided as
// the stages of all workers were in the same calls: exact with one worker, apportioned with
// several. Without the workers' stages it stays one part. Thread: any (values, pure functions).

#include <cstdint>
#include <span>
#include <vector>

#include "actors/cli/stage_sums.hpp"
#include "schemas/base/time.hpp"
#include "transport/client/source/source_session.hpp"

namespace moetier::cli {

struct call_sample {
  duration_ns total = 0;  // by the caller's own clock
  client::call_times parts;
};

struct call_split {  // microseconds, means of some calls
  double total = 0;
  double route = 0;    // checks, routing
  double pack = 0;     // replica choice, rows into banks, sending
  double wire = 0;     // both ways: sleeping peers woken, rows landed
  double queue = 0;    // before the engine took them up
  double group = 0;    // by slot
  double compute = 0;  // experts
  double give_back = 0;
  double held = 0;     // all of the worker's, where its stages are not known
  double combine = 0;  // the source's sum
  double rest = 0;     // of the whole, what none of these has
};

// Requires: at least one call. `workers`: null, or what their stages took meanwhile.
call_split split_of(std::span<const call_sample> calls, const stage_sums* workers);

// Calls that were measured together, and what the workers did meanwhile.
struct call_batch {
  std::vector<call_sample> calls;
  stage_sums workers;
};

// The split of the batch whose mean time is nearest to the median call's: it adds up, and calls that
// were pushed aside spoil their own batch only. Requires: at least one batch, none empty.
call_split typical_split(std::span<const call_batch> batches, bool stages_known);

}  // namespace moetier::cli
