#include "transport/client/source/repeat_counts.hpp"

#include <algorithm>
#include <iterator>

#include <fmt/core.h>

namespace moetier::client {

expected<void> repeat_counts::check(const layer_call& call, std::size_t layer) const {
  const of_layer& known = layers_[layer];
  if (known.count != 0 && call.repeat_count != known.count) {
    return fail(reason::sequence, fmt::format("repeat_count {}", call.repeat_count),
                fmt::format("layer {} runs {} times in a step", call.layer.value, known.count));
  }
  const std::uint16_t due = known.done[call.micro_batch];
  if (due >= call.repeat_count) {
    return fail(reason::sequence, "submit",
                fmt::format("layer {} has run its {} times in this step", call.layer.value,
                            call.repeat_count));
  }
  if (call.repeat_idx != due) {
    return fail(reason::sequence, fmt::format("repeat_idx {}", call.repeat_idx),
                fmt::format("layer {} is at repeat_idx {}", call.layer.value, due));
  }
  return {};
}

void repeat_counts::count(const layer_call& call, std::size_t layer) noexcept {
  layers_[layer].count = call.repeat_count;
  ++layers_[layer].done[call.micro_batch];
}

void repeat_counts::begin_step() noexcept {
  for (of_layer& each : layers_) {
    std::fill(std::begin(each.done), std::end(each.done), std::uint16_t{0});
  }
}

}  // namespace moetier::client
