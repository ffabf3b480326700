#include "workers/device/device_backend.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include <fmt/core.h>

#include "schemas/base/assert.hpp"
#include "schemas/base/limits.hpp"

namespace moetier::workers {
namespace {

using kernels::compute_status;
using kernels::expert_call;
using kernels::expert_entry;
using kernels::return_mode;
using kernels::cuda::device_failure;
using kernels::cuda::launch_status;
using kernels::cuda::layer_call;

constexpr std::size_t k_status_bytes = 64;  // before the rows that come out, for their alignment

template <class T>
T* at(std::byte* block, std::size_t offset) noexcept {
  return reinterpret_cast<T*>(block + offset);
}

// The position of a call's row among all rows of all regions; found again for each entry, as calls
// have one region or few.
std::uint64_t row_of(const expert_call& call, const expert_entry& e) noexcept {
  std::uint64_t before = 0;
  for (std::uint32_t region = 0; region < e.region; ++region) before += call.in[region].rows_live;
  return before + e.row;
}

// Calls visit(region, row) for rows [first, first + count) of all, in order.
template <class Visit>
void each_row(const expert_call& call, std::uint64_t first, std::uint32_t count, Visit&& visit) {
  std::uint64_t before = 0;
  std::uint32_t index = 0;
  for (std::size_t region = 0; region < call.in.size() && index < count; ++region) {
    const std::uint32_t rows = call.in[region].rows_live;
    while (index < count && first + index < before + rows)
      visit(region, static_cast<std::uint32_t>(first + index - before), index), ++index;
    before += rows;
  }
}

// Entries are sorted by slot, so each slot is looked at once.
bool slots_are_held(const expert_call& call) noexcept {
  std::uint32_t last = k_slots_per_worker_max + k_top_k_max;
  for (const expert_entry& e : call.entries) {
    if (e.slot == last) continue;
    if (e.slot >= call.pages.size() || call.pages[e.slot] == nullptr) return false;
    last = e.slot;
  }
  return true;
}

}  // namespace

// Rows [first, first + rows) of a call, with what its launches are a function of.
struct device_backend::chunk {
  const expert_call& call;
  std::uint64_t first = 0;
  std::uint32_t rows = 0;
  bool straight_in = false;   // rows are copied from where they lie
  bool straight_out = false;  // and results to where they belong
  work_key key;
  call_layout layout;

  std::uint32_t outputs_of_row() const noexcept {
    return call.mode == return_mode::exact ? call.k_in : 1;
  }
  bool holds(std::uint64_t row) const noexcept { return row >= first && row - first < rows; }
};

device_backend::sizes device_backend::sizes_of(const kernels::cuda::ExpertLayer& layer,
                                               const device_capacity& capacity) {
  sizes s;
  s.rows_cap = std::min(capacity.rows_max, k_chunk_rows_max);
  // Exact calls give k results a row: they run in as many chunks more, but for one row.
  s.out_rows = std::max(s.rows_cap, capacity.k_max);
  const call_layout l =
      call_layout_of(layer.shape().hidden_size, s.rows_cap, capacity.k_max, capacity.slots_max);
  s.in = in_bytes(l, s.rows_cap);
  s.out = k_status_bytes + s.out_rows * l.row_pitch;
  s.workspace = layer.workspace_bytes({s.rows_cap, capacity.k_max, capacity.slots_max});
  return s;
}

device_bill device_backend::bill(const kernels::cuda::ExpertLayer& layer,
                                 const device_capacity& capacity) {
  const sizes s = sizes_of(layer, capacity);
  return {.workspace = s.workspace, .calls = s.in + s.out};
}

expected<std::unique_ptr<device_backend>> device_backend::create(
    std::unique_ptr<kernels::cuda::ExpertLayer> layer, kernels::operand_form operands,
    const device_capacity& capacity, std::unique_ptr<device_queue> queue) {
  MOETIER_ASSERT(capacity.rows_max > 0 && capacity.k_max > 0 && capacity.slots_max > 0);
  const sizes s = sizes_of(*layer, capacity);
  std::array<expected<device_bytes>, 5> made{queue->allocate(s.in), queue->allocate(s.out),
                                             queue->allocate(std::max<std::size_t>(s.workspace, 1)),
                                             queue->allocate_pinned(s.in),
                                             queue->allocate_pinned(s.out)};
  for (auto& block : made) {
    if (!block) return unexpected_error(std::move(block.error()));
  }
  std::unique_ptr<device_backend> backend(new device_backend(std::move(layer), operands, capacity,
                                                             std::move(queue),
                                                             {.in = std::move(*made[0]),
                                                              .out = std::move(*made[1]),
                                                              .workspace = std::move(*made[2]),
                                                              .pinned_in = std::move(*made[3]),
                                                              .pinned_out = std::move(*made[4])}));
  device_backend& b = *backend;
  const auto init = [&b](void* stream) {
    return b.layer_->init_workspace({b.memory_.workspace.get(), b.sizes_.workspace}, stream);
  };
  if (b.queue_->run(init) != queue_status::ok || b.queue_->wait() != queue_status::ok)
    return unexpected_error(b.queue_->why_lost());
  return backend;
}

device_backend::device_backend(std::unique_ptr<kernels::cuda::ExpertLayer> layer,
                               kernels::operand_form operands, const device_capacity& capacity,
                               std::unique_ptr<device_queue> queue, memory blocks)
    : layer_(std::move(layer)),
      operands_(operands),
      capacity_(capacity),
      sizes_(sizes_of(*layer_, capacity)),
      queue_(std::move(queue)),
      memory_(std::move(blocks)) {}

device_backend::~device_backend() { (void)queue_->wait(); }

std::uint32_t device_backend::chunk_rows(const expert_call& call) const noexcept {
  const std::uint32_t each = call.mode == return_mode::exact ? std::max(call.k_in, 1u) : 1;
  return std::clamp(sizes_.out_rows / each, 1u, sizes_.rows_cap);
}

compute_status device_backend::run(const expert_call& call) {
  MOETIER_DEBUG_ASSERT(call.in.size() == call.out.size());
  if (call.lora != nullptr) return compute_status::lora_unsupported;
  if (call.k_in > capacity_.k_max || call.pages.size() > capacity_.slots_max)
    return compute_status::workspace_short;
  if (!slots_are_held(call)) return compute_status::bad_slot;
  std::uint64_t rows = 0;
  for (const kernels::row_region& region : call.in) rows += region.rows_live;

  std::size_t active = 0;
  for (std::size_t i = 0; i < call.entries.size(); ++i)
    active += i == 0 || call.entries[i].slot != call.entries[i - 1].slot ? 1 : 0;
  const std::uint32_t each = chunk_rows(call);
  const bool straight_in = rows > 0 && takes_straight(call);
  const bool straight_out = rows > 0 && gives_straight(call);
  for (std::uint64_t first = 0; first < rows; first += each) {
    chunk c{.call = call,
            .first = first,
            .rows = static_cast<std::uint32_t>(std::min<std::uint64_t>(each, rows - first)),
            .straight_in = straight_in,
            .straight_out = straight_out,
            .key = {},
            .layout = {}};
    c.key = {.rows_cap = bucket_of(c.rows, each),
             .k_in = call.k_in,
             .slots = static_cast<std::uint32_t>(call.pages.size()),
             .rows_per_slot = rows_per_slot_of(call.entries.size(), active),
             .mode = call.mode};
    c.layout = call_layout_of(shape().hidden_size, c.key.rows_cap, c.key.k_in, c.key.slots);
    if (call.clock != nullptr) call.clock->padding_rows += c.key.rows_cap - c.rows;
    write_in(c);
    if (const compute_status done = compute(c); done != compute_status::ok) return done;
    read_out(c);
  }
  return compute_status::ok;
}

// One region, as the worker's half of a layer has it; results only where every place is written.
bool device_backend::takes_straight(const expert_call& call) const noexcept {
  const kernels::row_region& r = call.in.front();
  return call.in.size() == 1 && queue_->reaches({r.base, r.rows_live * r.pitch_bytes});
}

bool device_backend::gives_straight(const expert_call& call) const noexcept {
  const kernels::out_region& to = call.out.front();
  return call.mode == return_mode::partial && call.in.size() == 1 &&
         queue_->reaches({to.base, call.in.front().rows_live * to.pitch_bytes});
}

void device_backend::write_in(const chunk& c) {
  std::byte* const in = memory_.pinned_in.get();
  const std::size_t entries = std::size_t{c.key.rows_cap} * c.key.k_in;
  *at<std::uint32_t>(in, c.layout.live) = c.rows;
  *at<std::uint32_t>(in, c.layout.status) = 0;
  std::copy(c.call.pages.begin(), c.call.pages.end(), at<const std::byte*>(in, c.layout.pages));
  std::int32_t* const slot_ids = at<std::int32_t>(in, c.layout.slot_ids);
  float* const weights = at<float>(in, c.layout.weights);
  std::fill_n(slot_ids, entries, -1);
  std::fill_n(weights, entries, 0.0F);
  for (const expert_entry& e : c.call.entries) {
    const std::uint64_t row = row_of(c.call, e);
    if (!c.holds(row)) continue;
    const std::size_t place = (row - c.first) * c.key.k_in + e.position;
    slot_ids[place] = e.slot;
    weights[place] = e.weight;
  }
  if (c.straight_in) return;
  each_row(c.call, c.first, c.rows,
           [&](std::size_t region, std::uint32_t row, std::uint32_t index) {
             const kernels::row_region& from = c.call.in[region];
             std::memcpy(in + c.layout.rows + index * c.layout.row_pitch,
                         from.base + row * from.pitch_bytes, row_bytes());
           });
}

queue_status device_backend::send_rows(const chunk& c) {
  std::byte* const in = memory_.in.get();
  const std::size_t staged = in_bytes(c.layout, c.straight_in ? 0 : c.rows);
  const queue_status sent = queue_->copy_in(in, memory_.pinned_in.get(), staged);
  if (!c.straight_in || sent != queue_status::ok) return sent;
  const kernels::row_region& from = c.call.in.front();
  return queue_->copy_rows({.to = in + c.layout.rows,
                            .to_pitch_bytes = c.layout.row_pitch,
                            .from = from.base + c.first * from.pitch_bytes,
                            .from_pitch_bytes = from.pitch_bytes,
                            .row_bytes = row_bytes(),
                            .rows = c.rows});
}

queue_status device_backend::launch(const chunk& c) {
  std::byte* const in = memory_.in.get();
  const layer_call call{.rows = in + c.layout.rows,
                        .row_pitch_bytes = c.layout.row_pitch,
                        .row_as = kernels::cuda::row_type::f32,
                        .rows_live = at<const std::uint32_t>(in, c.layout.live),
                        .rows_cap = c.key.rows_cap,
                        .k_in = c.key.k_in,
                        .slot_ids = at<const std::int32_t>(in, c.layout.slot_ids),
                        .weights = at<const float>(in, c.layout.weights),
                        .pages = at<const std::byte* const>(in, c.layout.pages),
                        .slots = c.key.slots,
                        .mode = c.key.mode,
                        .out = memory_.out.get() + k_status_bytes,
                        .out_pitch_bytes = c.layout.row_pitch,
                        .out_as = kernels::cuda::out_type::f32,
                        .rows_per_slot = c.key.rows_per_slot,
                        .workspace = {memory_.workspace.get(), sizes_.workspace},
                        .status = at<std::uint32_t>(in, c.layout.status)};
  return queue_->run_again(c.key, [this, &call](void* stream) {
    const launch_status grouped = layer_->group(call, stream);
    return grouped.ok() ? layer_->compute(call, stream) : grouped;
  });
}

queue_status device_backend::fetch_rows(const chunk& c) {
  std::byte* const results = memory_.pinned_out.get();
  const std::byte* const out = memory_.out.get() + k_status_bytes;
  const queue_status told =
      queue_->copy_out(results, memory_.in.get() + c.layout.status, sizeof(std::uint32_t));
  if (told != queue_status::ok) return told;
  if (!c.straight_out) {
    const std::size_t rows = std::size_t{c.rows} * c.outputs_of_row();
    return queue_->copy_out(results + k_status_bytes, out, rows * c.layout.row_pitch);
  }
  const kernels::out_region& to = c.call.out.front();
  return queue_->copy_rows({.to = to.base + c.first * to.pitch_bytes,
                            .to_pitch_bytes = to.pitch_bytes,
                            .from = out,
                            .from_pitch_bytes = c.layout.row_pitch,
                            .row_bytes = row_bytes(),
                            .rows = c.rows});
}

compute_status device_backend::compute(const chunk& c) {
  if (send_rows(c) != queue_status::ok || launch(c) != queue_status::ok ||
      fetch_rows(c) != queue_status::ok || queue_->wait() != queue_status::ok)
    return compute_status::device_lost;
  const std::uint32_t word = *at<std::uint32_t>(memory_.pinned_out.get(), 0);
  switch (static_cast<device_failure>(word & 0xffu)) {
    case device_failure::none: return compute_status::ok;
    case device_failure::bad_slot: return compute_status::bad_slot;
    case device_failure::bad_router_row:  // no expert layer routes
    case device_failure::wait_expired: break;
  }
  queue_->give_up(fmt::format("a wait inside {} expired, slot {}", identity(), word >> 8));
  return compute_status::device_lost;
}

void device_backend::read_out(const chunk& c) const {
  if (c.straight_out) return;
  const std::byte* const rows = memory_.pinned_out.get() + k_status_bytes;
  const std::size_t pitch = c.layout.row_pitch;
  if (c.call.mode == return_mode::partial) {
    each_row(c.call, c.first, c.rows,
             [&](std::size_t region, std::uint32_t row, std::uint32_t index) {
               const kernels::out_region& to = c.call.out[region];
               std::memcpy(to.base + row * to.pitch_bytes, rows + index * pitch, row_bytes());
             });
    return;
  }
  // Positions without an entry stay untouched.
  for (const expert_entry& e : c.call.entries) {
    const std::uint64_t row = row_of(c.call, e);
    if (!c.holds(row)) continue;
    const kernels::out_region& to = c.call.out[e.region];
    const std::size_t from = (row - c.first) * c.call.k_in + e.position;
    const std::size_t into = std::size_t{e.row} * c.call.k_in + e.position;
    std::memcpy(to.base + into * to.pitch_bytes, rows + from * pitch, row_bytes());
  }
}

expected<device_bytes> device_backend::place_page(std::span<const std::byte> page) {
  auto pinned = queue_->allocate_pinned(page.size());
  if (!pinned) return unexpected_error(std::move(pinned.error()));
  auto placed = queue_->allocate(page.size());
  if (!placed) return unexpected_error(std::move(placed.error()));
  std::copy(page.begin(), page.end(), pinned->get());
  if (queue_->copy_in(placed->get(), pinned->get(), page.size()) != queue_status::ok ||
      queue_->wait() != queue_status::ok)
    return unexpected_error(queue_->why_lost());
  return placed;
}

}  // namespace moetier::workers
