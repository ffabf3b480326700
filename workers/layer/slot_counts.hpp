#pragma once
// Selections per (layer, local slot) of one generation on this worker: real rows only, all repeats,
// none of warm-up steps. What plans are made from. The engine adds; anybody reads.
// Thread: reset, add: engine; snapshot: any.

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "schemas/base/ids.hpp"
#include "workers/store/generation_table.hpp"

namespace moetier::workers {

class slot_counts final {
 public:
  struct reading {
    generation_number generation;
    std::vector<std::uint64_t> counts;  // by (layer index, local slot)
  };

  // Starts at zero for the table's generation. Off the layer's path.
  void reset(const generation_table& table);

  // Adds the entries per local slot of one exchange. No effect for a generation that is not
  // counted.
  void add(generation_number generation, std::size_t layer_index,
           std::span<const std::uint32_t> per_slot) noexcept;

  reading snapshot() const;

 private:
  mutable std::mutex shape_;  // guards the arrays' replacement, never taken by add()
  generation_number generation_;
  std::vector<std::size_t> start_;
  std::unique_ptr<std::atomic<std::uint64_t>[]> counts_;
  std::size_t size_ = 0;
};

}  // namespace moetier::workers
