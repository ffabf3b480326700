#include "actors/cli/call_split.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "actors/cli/bench_core.hpp"
#include "schemas/base/assert.hpp"

namespace moetier::cli {
namespace {

double us(double ns) { return ns / static_cast<double>(k_microsecond); }

}  // namespace

call_split split_of(std::span<const call_sample> calls, const stage_sums* workers) {
  MOETIER_ASSERT(!calls.empty());
  double total = 0, route = 0, pack = 0, air = 0, held = 0, sum = 0;
  for (const call_sample& c : calls) {
    total += static_cast<double>(c.total);
    route += static_cast<double>(c.parts.route);
    pack += static_cast<double>(c.parts.pack);
    air += static_cast<double>(c.parts.air);
    held += static_cast<double>(std::min(c.parts.held, c.parts.air));
    sum += static_cast<double>(c.parts.sum);
  }
  const double n = static_cast<double>(calls.size());
  call_split s{.total = us(total / n),
               .route = us(route / n),
               .pack = us(pack / n),
               .wire = us((air - held) / n),
               .combine = us(sum / n)};
  const double worker = us(held / n);
  if (workers != nullptr && workers->held() > 0) {
    const double per_ns = worker / workers->held();
    s.wire += per_ns * workers->receive;
    s.queue = per_ns * workers->wait;
    s.group = per_ns * workers->group;
    s.compute = per_ns * workers->compute;
    s.give_back = per_ns * workers->give_back;
  } else {
    s.held = worker;
  }
  s.rest = s.total - (s.route + s.pack + s.wire + s.queue + s.group + s.compute + s.give_back +
                      s.held + s.combine);
  return s;
}

call_split typical_split(std::span<const call_batch> batches, bool stages_known) {
  MOETIER_ASSERT(!batches.empty());
  std::vector<double> totals;
  for (const call_batch& b : batches) {
    for (const call_sample& c : b.calls) totals.push_back(us(static_cast<double>(c.total)));
  }
  const double median = spread_of_samples(std::move(totals)).median;
  std::optional<call_split> nearest;
  for (const call_batch& b : batches) {
    const call_split s = split_of(b.calls, stages_known ? &b.workers : nullptr);
    const bool nearer = !nearest || std::abs(s.total - median) < std::abs(nearest->total - median);
    if (nearer) nearest = s;
  }
  return *nearest;
}

}  // namespace moetier::cli
