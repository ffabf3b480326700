#pragma once
// How a problem is spread: workers, sources, slots, replicas, and what was wished for. Chosen by
// the operator and the plan, the same for all workers; what each machine can do is its environment.
// Thread: any (an immutable value).

#include <concepts>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "schemas/base/error.hpp"
#include "schemas/resolution/words.hpp"

namespace moetier::resolution {

struct deployment {
  std::uint32_t workers = 1;
  std::uint32_t sources = 1;
  bool colocated = false;    // every source is a worker too
  bool one_process = false;  // members are threads of one process
  std::uint32_t tp_size = 1;
  std::uint32_t num_slots = 0;                    // N per layer; E where replicas are off
  std::vector<std::uint32_t> slots_per_worker{};  // empty = N divided evenly
  std::uint32_t moe_layers = 0;                   // 0 = no memory bill
  bool eplb = false;
  bool lora_routed = false;
  bool fused_finalise = true;         // false with any adapter
  bool custom_finalise = false;       // a named function finalises on the worker
  std::vector<std::string> labels{};  // per worker cluster/host/domain; empty = one domain
  bool dwdp = false;
  scheduler_wish scheduler = scheduler_wish::any;
  std::string communication = "auto";
  std::string held_layout{};         // id of the layout of pages that lie here; empty = none
  std::uint32_t rows_per_chunk = 0;  // M; 0 = T_max of all sources
  std::uint32_t tokens_max = 0;      // T_max of one source

  bool operator==(const deployment&) const = default;
};

// reason::invalid_argument: a count out of range, a list that is not one entry a worker.
expected<void> check_deployment(const deployment& d);

// Slots of worker `w`. Requires: checked, w < d.workers.
std::uint32_t slots_of(const deployment& d, std::uint32_t w) noexcept;
std::uint32_t most_slots(const deployment& d) noexcept;
bool slots_uniform(const deployment& d) noexcept;

// What to do about slots that workers cannot share evenly: turn replicas on with a named number of
// slots, or take the number of workers nearest to this one that divides the experts. Requires:
// experts, workers > 0.
std::string uneven_remedy(std::uint32_t experts, std::uint32_t workers, std::uint32_t slots);

// Receive rows of a chunk: M, or what all sources together can send.
std::uint64_t rows_of_chunk(const deployment& d) noexcept;

// Whether all workers share their label's first `parts` parts (1 cluster, 2 host, 3 domain).
bool same_place(const deployment& d, unsigned parts) noexcept;

std::string canonical_text(const deployment& d);

template <class Deployment, class Visitor>
requires std::same_as<std::remove_const_t<Deployment>, deployment>
void walk(Deployment& d, Visitor&& visit) {
  visit("workers", d.workers);
  visit("sources", d.sources);
  visit("colocated", d.colocated);
  visit("one_process", d.one_process);
  visit("tp_size", d.tp_size);
  visit("num_slots", d.num_slots);
  visit("slots_per_worker", d.slots_per_worker);
  visit("moe_layers", d.moe_layers);
  visit("eplb", d.eplb);
  visit("lora_routed", d.lora_routed);
  visit("fused_finalise", d.fused_finalise);
  visit("custom_finalise", d.custom_finalise);
  visit("labels", d.labels);
  visit("dwdp", d.dwdp);
  visit("scheduler", d.scheduler);
  visit("communication", d.communication);
  visit("held_layout", d.held_layout);
  visit("rows_per_chunk", d.rows_per_chunk);
  visit("tokens_max", d.tokens_max);
}

}  // namespace moetier::resolution
