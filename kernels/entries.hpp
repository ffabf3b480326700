#pragma once
// Entries of an expert_call before any arithmetic: the one check that every Backend makes first, so
// that no output is touched for a call that cannot be served, and where entries read and write.
// Thread: any.

#include <cstddef>

#include "kernels/backend.hpp"

namespace moetier::kernels {

// ok, or bad_slot if an entry names a slot outside the page table or one without a page.
// Requires: entries lie inside their regions and are sorted, as group_entries() leaves them.
compute_status check_entries(const expert_call& call) noexcept;

// Live rows of all regions together.
std::size_t live_rows(const expert_call& call) noexcept;

// Writes +0 to every live row of every region: what `partial` sums start from.
void clear_rows(const expert_call& call, std::size_t hidden_size) noexcept;

// The H inputs of an entry's row, and the H outputs that it writes (exact) or adds to (partial).
const float* input_of(const expert_call& call, const expert_entry& entry) noexcept;
float* output_of(const expert_call& call, const expert_entry& entry) noexcept;

// The adapter of an entry's row for its slot; nullptr = none.
// Requires: the adapter is below the number of adapters, its rank within 1..k_lora_rank_max.
const lora_expert* lora_of(const expert_call& call, const expert_entry& entry) noexcept;

}  // namespace moetier::kernels
