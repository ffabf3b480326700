#include "eplb/planner/reference_hierarchical.hpp"

#include <algorithm>
#include <numeric>

#include <fmt/core.h>

namespace moetier::eplb {
namespace {

// Items by bin, in packing order: falling size (equal sizes keep their order) into the least-loaded
// bin with a free place.
std::vector<std::vector<std::uint32_t>> pack(std::span<const double> sizes, std::uint32_t bins) {
  std::vector<std::uint32_t> order(sizes.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return sizes[a] > sizes[b]; });
  const std::size_t places = sizes.size() / bins;
  std::vector<std::vector<std::uint32_t>> packed(bins);
  std::vector<double> load(bins, 0);
  for (const std::uint32_t item : order) {
    std::size_t best = bins;
    for (std::size_t b = 0; b < bins; ++b) {
      if (packed[b].size() < places && (best == bins || load[b] < load[best])) best = b;
    }
    packed[best].push_back(item);
    load[best] += sizes[item];
  }
  return packed;
}

// The owner of each replica: every item once, then one more of the largest load per replica; of
// equals the first.
std::vector<std::uint32_t> replicas_of(std::span<const double> loads, std::size_t count) {
  std::vector<std::uint32_t> owners(loads.size());
  std::iota(owners.begin(), owners.end(), 0U);
  std::vector<double> replicas(loads.size(), 1);
  while (owners.size() < count) {
    std::uint32_t most = 0;
    for (std::uint32_t i = 1; i < loads.size(); ++i) {
      if (loads[i] / replicas[i] > loads[most] / replicas[most]) most = i;
    }
    owners.push_back(most);
    replicas[most] += 1;
  }
  return owners;
}

}  // namespace

expected<std::vector<std::int32_t>> reference_hierarchical(std::span<const std::uint64_t> loads,
                                                           const hierarchy& h) {
  const auto refuse = [](const std::string& what) { return fail(reason::placement_invalid, what); };
  if (h.groups == 0 || h.nodes == 0 || h.workers == 0 || loads.empty())
    return refuse("groups, nodes, workers and experts must not be 0");
  if (loads.size() % h.groups != 0)
    return refuse(fmt::format("{} experts do not divide into {} groups", loads.size(), h.groups));
  if (h.groups % h.nodes != 0)
    return refuse(fmt::format("{} groups do not divide over {} nodes", h.groups, h.nodes));
  if (h.workers % h.nodes != 0)
    return refuse(fmt::format("{} workers do not divide over {} nodes", h.workers, h.nodes));
  if (h.slots % h.workers != 0)
    return refuse(fmt::format("{} slots do not divide over {} workers", h.slots, h.workers));
  if (h.slots < loads.size())
    return refuse(fmt::format("{} slots for {} experts", h.slots, loads.size()));

  const std::size_t group_experts = loads.size() / h.groups;
  std::vector<double> group_load(h.groups, 0);
  for (std::size_t e = 0; e < loads.size(); ++e)
    group_load[e / group_experts] += static_cast<double>(loads[e]);

  std::vector<std::int32_t> slots;
  for (const auto& groups : pack(group_load, h.nodes)) {
    std::vector<std::uint32_t> experts;
    std::vector<double> own;
    for (const std::uint32_t group : groups) {
      for (std::size_t i = 0; i < group_experts; ++i) {
        experts.push_back(static_cast<std::uint32_t>(group * group_experts + i));
        own.push_back(static_cast<double>(loads[experts.back()]));
      }
    }
    const auto owners = replicas_of(own, h.slots / h.nodes);
    std::vector<double> count(own.size(), 0);
    for (const std::uint32_t o : owners) count[o] += 1;
    std::vector<double> sizes;
    for (const std::uint32_t o : owners) sizes.push_back(own[o] / count[o]);
    for (const auto& worker : pack(sizes, h.workers / h.nodes)) {
      for (const std::uint32_t replica : worker)
        slots.push_back(static_cast<std::int32_t>(experts[owners[replica]]));
    }
  }
  return slots;
}

}  // namespace moetier::eplb
