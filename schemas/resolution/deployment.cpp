#include "schemas/resolution/deployment.hpp"

#include <algorithm>
#include <numeric>
#include <string_view>

#include <fmt/core.h>

#include "schemas/base/limits.hpp"
#include "schemas/resolution/canonical_fields.hpp"

namespace moetier::resolution {
namespace {

// The label up to its `parts`-th slash.
std::string_view head_of(std::string_view label, unsigned parts) noexcept {
  std::size_t end = 0;
  for (unsigned p = 0; p < parts && end != label.npos; ++p)
    end = label.find('/', p == 0 ? 0 : end + 1);
  return label.substr(0, end);
}

}  // namespace

expected<void> check_deployment(const deployment& d) {
  struct bound {
    const char* name;
    std::uint64_t given;
    std::uint64_t least;
    std::uint64_t most;
  };
  for (const bound& b :
       {bound{"workers", d.workers, 1, k_workers_max},
        bound{"sources", d.sources, 1, k_sources_max}, bound{"tp_size", d.tp_size, 1, 1024},
        bound{"num_slots", d.num_slots, 1, k_slots_per_layer_max},
        bound{"moe_layers", d.moe_layers, 0, k_layers_max}}) {
    if (b.given < b.least || b.given > b.most)
      return fail(reason::invalid_argument, b.name, b.given,
                  fmt::format("{} to {}", b.least, b.most));
  }
  if (!d.slots_per_worker.empty()) {
    if (d.slots_per_worker.size() != d.workers)
      return fail(reason::invalid_argument, "slots_per_worker",
                  fmt::format("a list of {}", d.slots_per_worker.size()),
                  fmt::format("one entry for each of {} workers", d.workers));
    const auto sum =
        std::accumulate(d.slots_per_worker.begin(), d.slots_per_worker.end(), std::uint64_t{0});
    if (sum != d.num_slots)
      return fail(reason::invalid_argument, "slots_per_worker", fmt::format("{} in all", sum),
                  fmt::format("num_slots = {}", d.num_slots));
  }
  if (!d.labels.empty() && d.labels.size() != d.workers)
    return fail(reason::invalid_argument, "labels", fmt::format("a list of {}", d.labels.size()),
                fmt::format("one entry for each of {} workers", d.workers));
  return {};
}

std::uint32_t slots_of(const deployment& d, std::uint32_t w) noexcept {
  if (!d.slots_per_worker.empty()) return d.slots_per_worker[w];
  return d.num_slots / d.workers + (w < d.num_slots % d.workers ? 1 : 0);
}

std::uint32_t most_slots(const deployment& d) noexcept {
  if (d.slots_per_worker.empty()) return slots_of(d, 0);
  return *std::max_element(d.slots_per_worker.begin(), d.slots_per_worker.end());
}

bool slots_uniform(const deployment& d) noexcept {
  if (d.slots_per_worker.empty()) return d.num_slots % d.workers == 0;
  return std::all_of(d.slots_per_worker.begin(), d.slots_per_worker.end(),
                     [&](std::uint32_t slots) { return slots == d.slots_per_worker.front(); });
}

std::string uneven_remedy(std::uint32_t experts, std::uint32_t workers, std::uint32_t slots) {
  const std::uint32_t named = (std::max(experts, slots) + workers - 1) / workers * workers;
  std::uint32_t lower = workers;
  while (experts % lower != 0) --lower;
  std::uint32_t upper = workers;
  while (upper <= experts && experts % upper != 0) ++upper;
  const bool down = upper > experts || workers - lower <= upper - workers;
  const std::uint32_t best = down ? lower : upper;
  return fmt::format(
      "{} slots over {} workers are uneven; take {} slots with replicas, or {} worker{}", slots,
      workers, named, best, best == 1 ? "" : "s");
}

std::uint64_t rows_of_chunk(const deployment& d) noexcept {
  return d.rows_per_chunk != 0 ? d.rows_per_chunk : std::uint64_t{d.sources} * d.tokens_max;
}

bool same_place(const deployment& d, unsigned parts) noexcept {
  return std::all_of(d.labels.begin(), d.labels.end(), [&](const std::string& label) {
    return head_of(label, parts) == head_of(d.labels.front(), parts);
  });
}

std::string canonical_text(const deployment& d) {
  canonical_fields text("moetier deployment 1");
  walk(d, text);
  return text.take();
}

}  // namespace moetier::resolution
