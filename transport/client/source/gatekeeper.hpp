#pragma once
// Which of a call's workers decides whether there is time for it. If each of them did, a loaded
// tier would compute halves: two that each admit one call in two, at moments of their own, agree on
// one in four. So the one that was slowest of late decides by its usual limit, and the others, who
// are told so (k_flag_decided), turn down only what would surely end too late. Where spans are
// numbered anew the memory is wrong for one call. Pure. Thread: owner. Never allocates.

#include <array>

#include "schemas/base/time.hpp"
#include "transport/client/source/call_rows.hpp"

namespace moetier::client {

class gatekeeper final {
 public:
  // k_spans_max where there are no workers.
  std::size_t choose(worker_mask workers) const noexcept {
    std::size_t slowest = k_spans_max;
    for_each_span(workers, [&](std::size_t s) {
      if (slowest == k_spans_max || held_[s] > held_[slowest]) slowest = s;
    });
    return slowest;
  }
  // How long it held a call's rows, or said that it would have to.
  void note(std::size_t span, duration_ns held) noexcept { held_[span] = held; }

 private:
  std::array<duration_ns, k_spans_max> held_{};
};

}  // namespace moetier::client
