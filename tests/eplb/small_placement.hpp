#pragma once
// A builder of small legal placements for tests: contiguous slots, workers named w0, w1, ...
// Thread: any.

#include <string>
#include <vector>

#include "eplb/placement.hpp"

namespace moetier::eplb {

inline std::vector<worker_span> spans_of(const std::vector<std::uint32_t>& slots) {
  std::vector<worker_span> spans;
  std::uint32_t first = 0;
  for (std::size_t w = 0; w < slots.size(); ++w) {
    spans.push_back({worker_id{static_cast<std::uint16_t>(w)},
                     std::string("w").append(std::to_string(w)), first, slots[w]});
    first += slots[w];
  }
  return spans;
}

inline std::vector<layer_id> layers_of(std::uint16_t count) {
  std::vector<layer_id> layers;
  for (std::uint16_t l = 0; l < count; ++l) layers.push_back(layer_id{l});
  return layers;
}

}  // namespace moetier::eplb
