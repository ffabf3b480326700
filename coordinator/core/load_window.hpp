#pragma once
// Selections that the workers served inside a window of time, from their totals: what balance is
// judged by, as totals since the generation began would hide a change for hours. Pure: time and
// totals come in. Owned by the core; a window that has ended is an immutable value. Thread: owner.

#include <cstdint>
#include <memory>
#include <vector>

#include "schemas/base/ids.hpp"
#include "schemas/base/time.hpp"

namespace moetier::coordinator {

struct window_loads {
  generation_number generation;
  duration_ns length = 0;
  // [span of the placement][layer index * the span's slots + local slot]
  std::vector<std::vector<std::uint64_t>> served;
};

class load_window final {
 public:
  static constexpr duration_ns k_length = 5 * k_second;

  bool due(time_ns now) const noexcept { return now >= began_ + k_length; }
  // Ends the window and begins the next. `totals` as `served` above; a worker that began anew, or
  // another generation, starts from zero.
  void turn(time_ns now, generation_number generation,
            std::vector<std::vector<std::uint64_t>> totals);
  // null before the first has ended.
  const std::shared_ptr<const window_loads>& last() const noexcept { return last_; }

 private:
  time_ns began_ = 0;
  generation_number generation_;
  std::vector<std::vector<std::uint64_t>> totals_;  // when it began
  std::shared_ptr<const window_loads> last_;
};

}  // namespace moetier::coordinator
