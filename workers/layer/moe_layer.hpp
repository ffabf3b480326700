#pragma once
// MoeLayer: the worker's half of a layer under the ExternalComm schedule, for one exchange at a
// time: judge generation and order, turn row records into entries of local slots, group them, let
// the Backend compute, finalise by the return mode, give the rows back. It composes Backend,
// Communication, the generation's tables and the hooks, and knows none of their insides.
//
// Refusals, each an answer to the source: STALE_GENERATION (detail: newest generation held),
// BAD_STATE (order), INVALID (layer, slot, adapter), UNSUPPORTED (exact on a backend that is not
// row invariant, an adapter on a backend that runs none), DEVICE (it failed). Slots of other
// workers in a record are not this one's matter; a record that names an empty slot of this worker
// makes the whole exchange INVALID, and so does one that names an adapter it does not hold: never a
// sum with something missing. Thread: engine. Allocates when made and when a table or a set of
// adapters is installed, never in serve().

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/backend.hpp"
#include "transport/communication.hpp"
#include "workers/layer/adapter_tables.hpp"
#include "workers/layer/generation_use.hpp"
#include "workers/layer/slot_counts.hpp"
#include "workers/layer/visit_ledger.hpp"
#include "workers/store/generation_table.hpp"

namespace moetier::workers {

struct moe_layer_options {
  std::uint32_t layers = 0;    // MoE layers of the model
  std::uint32_t rows_max = 0;  // of one exchange
  std::uint32_t top_k_max = 0;
  std::uint32_t sources_max = 0;
};

// What the exchange that was served last was, for whoever counts; all zero of one that was refused.
struct served_exchange {
  std::uint32_t experts = 0;  // slots with at least one row
  kernels::stage_clock compute;
  time_ns grouped_at = 0;  // records read, entries sorted: compute follows
  time_ns computed_at = 0;
};

class MoeLayer final {
 public:
  MoeLayer(const moe_layer_options& options, kernels::Backend& backend,
           transport::WorkerHalf& half);

  // Rows of this generation are served from now on; keeps at most the newest two.
  // `resolution`: what it was built by; rows of another one are refused as stale.
  void install(std::shared_ptr<const generation_table> table, std::uint32_t first_slot,
               std::uint64_t resolution = 0);
  // Drops tables older than `than` if no visit holds them; false: still held.
  bool release(generation_number than);

  // Rows may name these adapters from now on, and no others.
  void install(std::shared_ptr<const adapter_set> adapters);

  // Whether a source of this shape can be served; the text says why not.
  expected<void> check_source(const transport::source_shape& shape) const;
  void attach(source_id source);
  void detach(source_id source);

  // Computes and gives back one arrival; returns what the source was told.
  status serve(const transport::arrival& work);

  const slot_counts& counts() const noexcept { return counts_; }
  std::uint64_t rows_total() const noexcept { return rows_total_; }
  const served_exchange& last() const noexcept { return last_; }
  generation_number newest() const noexcept;

 private:
  struct placed {
    std::shared_ptr<const generation_table> table;
    std::uint32_t first_slot = 0;
    std::uint64_t resolution = 0;
    adapter_tables adapters;
  };
  struct verdict {
    status code = status::ok;
    std::uint32_t rows = 0;  // to give back
    std::uint64_t detail = 0;
  };

  const placed* find(const transport::exchange_key& key) const noexcept;
  verdict compute(const transport::arrival& work, const placed& in, std::size_t layer_index);
  // Fills entries_ and row_adapters_; false: a slot of this worker is out of range or holds no
  // expert, or an adapter is not held.
  bool read_records(const transport::arrival& work, const placed& in, std::size_t layer_index);
  std::uint32_t compact_exact(const transport::arrival& work, const placed& in,
                              std::size_t layer_index, std::span<std::byte> rows) const;

  moe_layer_options options_;
  kernels::Backend& backend_;
  transport::WorkerHalf& half_;
  std::array<placed, 2> tables_;                 // newest first
  std::shared_ptr<const adapter_set> adapters_;  // null = none
  generation_use use_;
  visit_ledger ledger_;
  slot_counts counts_;
  std::uint64_t rows_total_ = 0;
  served_exchange last_;

  std::vector<kernels::expert_entry> entries_;
  std::vector<kernels::expert_entry> scratch_;
  std::vector<std::uint32_t> slot_counts_;
  std::vector<std::int32_t> row_adapters_;  // place in adapters_ by row, -1 = none
  bool any_adapter_ = false;                // of the rows at hand
  std::unique_ptr<std::byte[], void (*)(std::byte*)> workspace_;
  std::size_t workspace_bytes_ = 0;
  std::size_t entry_count_ = 0;
};

}  // namespace moetier::workers
