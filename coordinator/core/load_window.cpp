#include "coordinator/core/load_window.hpp"

namespace moetier::coordinator {

void load_window::turn(time_ns now, generation_number generation,
                       std::vector<std::vector<std::uint64_t>> totals) {
  window_loads next{.generation = generation, .length = now - began_, .served = totals};
  if (generation == generation_ && totals_.size() == totals.size()) {
    for (std::size_t w = 0; w < totals.size(); ++w) {
      if (totals_[w].size() != totals[w].size()) continue;
      for (std::size_t i = 0; i < totals[w].size(); ++i) {
        // Less than before: the worker's process is another one.
        if (totals[w][i] >= totals_[w][i]) next.served[w][i] -= totals_[w][i];
      }
    }
  }
  // The first window began before there was anything to count.
  if (began_ != 0) last_ = std::make_shared<const window_loads>(std::move(next));
  began_ = now;
  generation_ = generation;
  totals_ = std::move(totals);
}

}  // namespace moetier::coordinator
