#pragma once
// What the routers have beside their matrices, layer by layer: selection biases, per-expert scales,
// token tables. Read from the checkpoint once, carried in routing snapshots, applied by route().
// Checked when made: lengths, ranges, no NaN, ids of a table row distinct. Thread: any (an
// immutable value behind shared_ptr<const>).

#include <cstdint>
#include <memory>
#include <vector>

namespace moetier {

struct layer_routing {
  std::vector<float> bias;          // [columns] added to the score for selection only; or empty
  std::vector<float> expert_scale;  // [E] multiplies the weight after renormalising; or empty
  std::vector<std::uint16_t>
      table;  // [table_rows, k] expert ids by token id (a hash layer); or empty
  std::uint32_t table_rows = 0;
  std::vector<float> table_weights;  // [table_rows, k] of static_table; empty = 1
  std::vector<float>
      shared_gate;  // [H] the shared experts' weight is sigmoid(shared_gate·x); or empty

  bool hashed() const noexcept { return !table.empty(); }
  bool operator==(const layer_routing&) const = default;
};

struct routing_tables {
  std::vector<layer_routing> layers;  // by MoE layer index

  bool operator==(const routing_tables&) const = default;
};

using routing_tables_ptr = std::shared_ptr<const routing_tables>;

}  // namespace moetier
