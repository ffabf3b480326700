#include "kernels/entries.hpp"

#include <algorithm>
#include <cstring>
#include <tuple>
#include <utility>

#include "schemas/base/assert.hpp"

namespace moetier::kernels {
namespace {

bool in_row_order(const expert_entry& a, const expert_entry& b) noexcept {
  return std::tie(a.region, a.row, a.position) < std::tie(b.region, b.row, b.position);
}

}  // namespace

compute_status check_entries(const expert_call& call) noexcept {
  MOETIER_ASSERT(call.in.size() == call.out.size());
  const expert_entry* last = nullptr;
  for (const expert_entry& entry : call.entries) {
    MOETIER_ASSERT(entry.region < call.in.size());
    MOETIER_ASSERT(entry.row < call.in[entry.region].rows_live);
    MOETIER_ASSERT(entry.position < call.k_in);
    MOETIER_ASSERT(last == nullptr || last->slot < entry.slot ||
                   (last->slot == entry.slot && in_row_order(*last, entry)));
    last = &entry;
    if (entry.slot >= call.pages.size() || call.pages[entry.slot] == nullptr)
      return compute_status::bad_slot;
  }
  return compute_status::ok;
}

std::size_t live_rows(const expert_call& call) noexcept {
  std::size_t rows = 0;
  for (const row_region& region : call.in) rows += region.rows_live;
  return rows;
}

void clear_rows(const expert_call& call, std::size_t hidden_size) noexcept {
  for (std::size_t r = 0; r < call.in.size(); ++r) {
    std::byte* row = call.out[r].base;
    for (std::uint32_t i = 0; i < call.in[r].rows_live; ++i, row += call.out[r].pitch_bytes)
      std::memset(row, 0, hidden_size * sizeof(float));
  }
}

const float* input_of(const expert_call& call, const expert_entry& entry) noexcept {
  const row_region& region = call.in[entry.region];
  return reinterpret_cast<const float*>(region.base + entry.row * region.pitch_bytes);
}

float* output_of(const expert_call& call, const expert_entry& entry) noexcept {
  const out_region& region = call.out[entry.region];
  const std::size_t line = call.mode == return_mode::partial
                               ? entry.row
                               : std::size_t{entry.row} * call.k_in + entry.position;
  return reinterpret_cast<float*>(region.base + line * region.pitch_bytes);
}

const lora_expert* lora_of(const expert_call& call, const expert_entry& entry) noexcept {
  if (call.lora == nullptr) return nullptr;
  MOETIER_ASSERT(entry.region < call.lora->adapter_of.size());
  const std::int32_t* adapters = call.lora->adapter_of[entry.region];
  if (adapters == nullptr || adapters[entry.row] < 0) return nullptr;
  const std::size_t at =
      static_cast<std::size_t>(adapters[entry.row]) * call.pages.size() + entry.slot;
  MOETIER_ASSERT(at < call.lora->experts.size());
  const lora_expert* expert = call.lora->experts[at];
  MOETIER_ASSERT(expert == nullptr || (expert->rank > 0 && expert->rank <= k_lora_rank_max));
  return expert;
}

void group_entries(std::span<expert_entry> entries, std::span<expert_entry> scratch,
                   std::span<std::uint32_t> slot_counts) noexcept {
  MOETIER_ASSERT(scratch.size() >= entries.size());
  std::fill(slot_counts.begin(), slot_counts.end(), 0u);
  for (const expert_entry& entry : entries) {
    MOETIER_ASSERT(entry.slot < slot_counts.size());
    ++slot_counts[entry.slot];
  }
  // Counts become first places, then (as entries land) ends, then counts again.
  std::uint32_t first = 0;
  for (std::uint32_t& count : slot_counts) first += std::exchange(count, first);
  for (const expert_entry& entry : entries) scratch[slot_counts[entry.slot]++] = entry;
  const bool ordered = std::is_sorted(entries.begin(), entries.end(), in_row_order);
  std::copy_n(scratch.begin(), entries.size(), entries.begin());
  std::uint32_t begin = 0;
  for (std::uint32_t& end : slot_counts) {
    // Callers walk their rows in order, so the stable sort by slot is the whole work; any other
    // order is put right here.
    if (!ordered) std::sort(entries.begin() + begin, entries.begin() + end, in_row_order);
    const std::uint32_t count = end - begin;
    begin = end;
    end = count;
  }
}

}  // namespace moetier::kernels
