#include "workers/layer/moe_layer.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include <fmt/core.h>

#include "schemas/base/assert.hpp"
#include "schemas/base/time.hpp"

namespace moetier::workers {
namespace {

constexpr std::size_t k_alignment = 64;

void free_aligned(std::byte* p) { ::operator delete[](p, std::align_val_t{k_alignment}); }

std::byte* allocate_aligned(std::size_t bytes) {
  return static_cast<std::byte*>(::operator new[](bytes, std::align_val_t{k_alignment}));
}

std::int32_t read_i32(const std::byte* at) noexcept {
  std::int32_t v;
  std::memcpy(&v, at, sizeof v);
  return v;
}

float read_f32(const std::byte* at) noexcept {
  float v;
  std::memcpy(&v, at, sizeof v);
  return v;
}

// A record's slot -> local slot; -1 for none and for slots of other workers. Shared experts lie
// behind the plan's slots.
std::int64_t local_of(std::int32_t slot, std::uint32_t first_slot, std::uint32_t slots) noexcept {
  if (const std::int32_t shared = transport::shared_expert_of(slot); shared >= 0)
    return std::int64_t{slots} + shared;
  const std::int64_t local = std::int64_t{slot} - first_slot;
  return slot == k_no_slot || local < 0 || local >= slots ? -1 : local;
}

}  // namespace

MoeLayer::MoeLayer(const moe_layer_options& options, kernels::Backend& backend,
                   transport::WorkerHalf& half)
    : options_(options),
      backend_(backend),
      half_(half),
      ledger_(options.sources_max, use_),
      entries_(std::size_t{options.rows_max} * options.top_k_max),
      scratch_(entries_.size()),
      slot_counts_(k_slots_per_worker_max + k_top_k_max),
      row_adapters_(options.rows_max, -1),
      workspace_(nullptr, free_aligned),
      workspace_bytes_(backend.workspace_bytes(options.rows_max, options.top_k_max)) {
  workspace_.reset(allocate_aligned(workspace_bytes_));
}

void MoeLayer::install(std::shared_ptr<const generation_table> table, std::uint32_t first_slot,
                       std::uint64_t resolution) {
  adapter_tables adapters(*table, adapters_.get());
  placed next{std::move(table), first_slot, resolution, std::move(adapters)};
  const generation_number generation = next.table->generation();
  // The same plan again, after a repeated command, replaces itself.
  if (newest() != generation || tables_[0].table == nullptr) {
    MOETIER_ASSERT(tables_[0].table == nullptr || newest() < generation);
    counts_.reset(*next.table);
    tables_[1] = std::move(tables_[0]);
  }
  tables_[0] = std::move(next);
}

void MoeLayer::install(std::shared_ptr<const adapter_set> adapters) {
  adapters_ = std::move(adapters);
  for (placed& p : tables_) {
    if (p.table != nullptr) p.adapters = adapter_tables(*p.table, adapters_.get());
  }
}

bool MoeLayer::release(generation_number than) {
  if (use_.held_before(than) > 0) return false;
  for (placed& p : tables_) {
    if (p.table != nullptr && p.table->generation() < than) p = {};
  }
  return true;
}

expected<void> MoeLayer::check_source(const transport::source_shape& shape) const {
  const std::size_t row = transport::padded_stride(std::size_t{backend_.shape().hidden_size} * 4);
  const auto refuse = [](std::string_view what, std::size_t given, std::string_view allowed) {
    return fail(reason::invalid_argument, what, given, allowed);
  };
  if (shape.rows_max == 0 || shape.rows_max > options_.rows_max) {
    return refuse("rows_max", shape.rows_max, fmt::format("1 to {}", options_.rows_max));
  }
  if (shape.top_k == 0 || shape.top_k > options_.top_k_max) {
    return refuse("top_k", shape.top_k, fmt::format("1 to {}", options_.top_k_max));
  }
  if (shape.hidden_stride != row) {
    return refuse("hidden_stride", shape.hidden_stride, fmt::format("{}", row));
  }
  if (shape.return_stride != row) {
    return refuse("return_stride", shape.return_stride, fmt::format("{}", row));
  }
  if (shape.return_rows_max != shape.rows_max &&
      shape.return_rows_max != std::uint64_t{shape.rows_max} * shape.top_k) {
    return refuse("return_rows_max", shape.return_rows_max, "rows_max or rows_max times top_k");
  }
  return {};
}

void MoeLayer::attach(source_id source) { ledger_.attach(source, options_.layers); }

void MoeLayer::detach(source_id source) { ledger_.detach(source); }

generation_number MoeLayer::newest() const noexcept {
  return tables_[0].table == nullptr ? generation_number{} : tables_[0].table->generation();
}

const MoeLayer::placed* MoeLayer::find(const transport::exchange_key& key) const noexcept {
  for (const placed& p : tables_) {
    if (p.table != nullptr && p.table->generation() == key.generation &&
        p.table->plan() == key.plan && p.resolution == key.resolution_id) {
      return &p;
    }
  }
  return nullptr;
}

status MoeLayer::serve(const transport::arrival& work) {
  verdict v;
  last_ = {};
  const placed* in = find(work.key);
  const int layer_index = in == nullptr ? -1 : in->table->index_of(work.key.layer);
  if (in == nullptr) {
    v = {.code = status::stale_generation, .detail = newest().value};
  } else if (layer_index < 0) {
    v = {.code = status::invalid};
  } else if (!ledger_.begin(work.source, work.key, static_cast<std::uint32_t>(layer_index))) {
    v = {.code = status::bad_state};
  } else {
    v = compute(work, *in, static_cast<std::size_t>(layer_index));
    ledger_.end(work.source, work.key);
  }
  half_.give_back(work.ticket, v.rows, v.code, v.detail);
  return v.code;
}

MoeLayer::verdict MoeLayer::compute(const transport::arrival& work, const placed& in,
                                    std::size_t layer_index) {
  const auto mode = static_cast<kernels::return_mode>(work.key.return_mode);
  if (mode != kernels::return_mode::partial && mode != kernels::return_mode::exact) {
    return {.code = status::invalid};
  }
  if (mode == kernels::return_mode::exact &&
      (!backend_.row_invariant() ||
       work.shape->return_rows_max < std::uint64_t{work.rows} * work.shape->top_k)) {
    return {.code = status::unsupported};
  }
  if (!read_records(work, in, layer_index)) return {.code = status::invalid};
  if (any_adapter_ && !backend_.supports_lora()) return {.code = status::unsupported};
  const std::span<std::byte> rows = half_.return_region(work.ticket);
  if (rows.empty() && work.rows > 0) return {.code = status::cancelled};  // its source is gone

  const std::uint32_t slots = in.table->slots(layer_index);
  const std::size_t pages = in.table->pages(layer_index).size();
  const std::span<std::uint32_t> per_slot = std::span(slot_counts_).first(pages);
  const std::span<kernels::expert_entry> entries = std::span(entries_).first(entry_count_);
  kernels::group_entries(entries, scratch_, per_slot);

  const kernels::row_region region{
      .base = work.hidden.data(), .pitch_bytes = work.shape->hidden_stride, .rows_live = work.rows};
  const kernels::out_region out{.base = rows.data(), .pitch_bytes = work.shape->return_stride};
  const std::int32_t* const adapter_of[] = {row_adapters_.data()};
  const kernels::lora_call lora{.adapter_of = adapter_of,
                                .experts = in.adapters.experts(layer_index)};
  const kernels::expert_call call{.in = {&region, 1},
                                  .out = {&out, 1},
                                  .entries = entries,
                                  .pages = in.table->pages(layer_index),
                                  .k_in = work.shape->top_k,
                                  .mode = mode,
                                  .workspace = {workspace_.get(), workspace_bytes_},
                                  .lora = any_adapter_ ? &lora : nullptr,
                                  .clock = &last_.compute};
  last_.grouped_at = monotonic_now();
  last_.compute.last = last_.grouped_at;
  const kernels::compute_status done = backend_.run(call);
  // A backend that tells its stages has looked at the clock when the last one ended.
  const bool told = last_.compute.last != last_.grouped_at;
  last_.computed_at = told ? last_.compute.last : monotonic_now();
  MOETIER_ASSERT(done != kernels::compute_status::workspace_short);
  if (done == kernels::compute_status::device_lost) return {.code = status::device};
  if (done != kernels::compute_status::ok) return {.code = status::invalid};

  if ((work.key.flags & transport::k_flag_warmup) == 0) {
    counts_.add(work.key.generation, layer_index, per_slot.first(slots));
  }
  rows_total_ += work.rows;
  last_.experts = static_cast<std::uint32_t>(
      std::ranges::count_if(per_slot, [](std::uint32_t of_slot) { return of_slot != 0; }));
  const std::uint32_t give = mode == kernels::return_mode::partial
                                 ? work.rows
                                 : compact_exact(work, in, layer_index, rows);
  return {.code = status::ok, .rows = give};
}

bool MoeLayer::read_records(const transport::arrival& work, const placed& in,
                            std::size_t layer_index) {
  const std::uint32_t k = work.shape->top_k;
  const std::uint32_t slots = in.table->slots(layer_index);
  const auto pages = in.table->pages(layer_index);
  const std::size_t stride = transport::record_stride(k);
  MOETIER_ASSERT(work.rows <= options_.rows_max && k <= options_.top_k_max);
  MOETIER_ASSERT(work.records.size() >= work.rows * stride);
  entry_count_ = 0;
  any_adapter_ = false;
  for (std::uint32_t r = 0; r < work.rows; ++r) {
    const std::byte* head = work.records.data() + r * stride;
    row_adapters_[r] = -1;
    if (const std::int32_t id = read_i32(head + sizeof(std::uint32_t)); id != -1) {
      if (adapters_ != nullptr) row_adapters_[r] = adapters_->index_of(id);
      if (row_adapters_[r] < 0) return false;
      any_adapter_ = true;
    }
    const std::byte* record = head + transport::k_record_head;
    for (std::uint32_t j = 0; j < k; ++j) {
      const std::int64_t local =
          local_of(read_i32(record + 4 * std::size_t{j}), in.first_slot, slots);
      if (local < 0) continue;
      if (local >= static_cast<std::int64_t>(pages.size())) return false;
      if (pages[static_cast<std::size_t>(local)] == nullptr) return false;
      entries_[entry_count_++] = {
          .region = 0,
          .row = r,
          .position = static_cast<std::uint16_t>(j),
          .slot = static_cast<std::uint16_t>(local),
          .weight = read_f32(record + 4 * std::size_t{k} + 4 * std::size_t{j})};
    }
  }
  return true;
}

std::uint32_t MoeLayer::compact_exact(const transport::arrival& work, const placed& in,
                                      std::size_t layer_index, std::span<std::byte> rows) const {
  // The backend wrote position j of row r at place r·k + j; the wire wants the written ones alone,
  // in the same order. Moving forward never overtakes what is still to be read.
  const std::uint32_t k = work.shape->top_k;
  const std::uint32_t slots = in.table->slots(layer_index);
  const std::size_t stride = transport::record_stride(k);
  const std::size_t pitch = work.shape->return_stride;
  std::uint32_t next = 0;
  for (std::uint32_t r = 0; r < work.rows; ++r) {
    const std::byte* record = work.records.data() + r * stride + transport::k_record_head;
    for (std::uint32_t j = 0; j < k; ++j) {
      if (local_of(read_i32(record + 4 * std::size_t{j}), in.first_slot, slots) < 0) continue;
      const std::size_t from = std::size_t{r} * k + j;
      if (from != next) std::memcpy(rows.data() + next * pitch, rows.data() + from * pitch, pitch);
      ++next;
    }
  }
  return next;
}

}  // namespace moetier::workers
