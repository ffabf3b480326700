#include <fmt/core.h>

#include "eplb/partition.hpp"
#include "eplb/placement.hpp"

namespace moetier::eplb {

std::vector<std::uint32_t> even_partition(std::uint32_t experts, std::uint32_t workers) {
  std::vector<std::uint32_t> sizes(workers);
  for (std::uint32_t w = 0; w < workers; ++w) sizes[w] = partition{experts, workers}.size(w);
  return sizes;
}

expected<placement> default_placement(std::uint32_t experts, std::span<const layer_id> layers,
                                      std::span<const worker_span> spans) {
  std::uint64_t slots = 0;
  for (const worker_span& s : spans) slots += s.slots;
  if (spans.empty() || slots < experts) {
    return fail(
        reason::partition_invalid, experts, spans.size(),
        fmt::format("{} slots per layer are too few; give each worker at least {} slots", slots,
                    spans.empty() ? experts : (experts + spans.size() - 1) / spans.size()));
  }

  // Exactly as many slots as experts: the contiguous partition, whatever each worker's size. Else
  // worker w starts at w·E div W, so that neighbours overlap and every expert is covered when N/W
  // >= ceil(E/W).
  std::vector<std::int32_t> dense;
  std::uint64_t contiguous = 0;
  for (std::size_t w = 0; w < spans.size(); ++w) {
    const std::uint64_t start =
        slots == experts ? contiguous : std::uint64_t{w} * experts / spans.size();
    for (std::uint32_t l = 0; l < spans[w].slots; ++l) {
      // A worker with more slots than experts leaves the rest empty: no expert twice on one worker.
      dense.push_back(l < experts ? static_cast<std::int32_t>((start + l) % experts) : -1);
    }
    contiguous += spans[w].slots;
  }

  std::vector<bool> covered(experts, false);
  for (const std::int32_t e : dense) {
    if (e >= 0) covered[static_cast<std::size_t>(e)] = true;
  }
  std::string lost;
  std::size_t lost_count = 0;
  for (std::uint32_t e = 0; e < experts; ++e) {
    if (covered[e]) continue;
    if (++lost_count <= 8) lost += fmt::format("{}{}", lost.empty() ? "" : ", ", e);
  }
  if (lost_count > 0) {
    return fail(
        reason::placement_invalid,
        fmt::format(
            "the default placement leaves out {} experts ({}{}); {} slots per worker cover all",
            lost_count, lost, lost_count > 8 ? ", ..." : "",
            (experts + spans.size() - 1) / spans.size()));
  }

  std::vector<layer_slots> all;
  for (const layer_id l : layers) all.push_back({l, dense});
  return placement::make(experts, {spans.begin(), spans.end()}, std::move(all));
}

}  // namespace moetier::eplb
