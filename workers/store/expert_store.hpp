#pragma once
// The experts that this worker holds: which generation needs which expert in which local slot, and
// in which page it lies. It fills empty pages for a new generation while the old one serves, keeps
// pages whose expert stays, and frees pages only when told that nobody computes with them. At most
// two generations live at a time:
//
//   prepare -> prepared -> activate -> active -> (the next one activates) -> draining -> release
//                       -> abort (the pages it filled are empty again; nothing in use was touched)
//
// Repeats of a call change nothing. It knows neither coordinator nor epochs, and never touches a
// page that an active or draining table names.
//
// Thread: owner. All calls come from one thread at a time, and prepare() takes as long as loading
// does: a shell gives the store to its loader thread and queues all calls there. The engine's
// thread only reads the tables that it was handed, and pages through them; release() must come
// after it has let go of the older ones. The flag in prepare_watch may be set from any thread.

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "kernels/backend.hpp"
#include "schemas/base/error.hpp"
#include "schemas/model/model_description.hpp"
#include "workers/store/expert_source.hpp"
#include "workers/store/generation_table.hpp"
#include "workers/store/page_pool.hpp"

namespace moetier::workers {

struct expert_store_options {
  std::uint32_t slots = 0;        // per layer
  std::uint32_t spare_pages = 8;  // for generations that move experts
  std::uint32_t shared = 0;       // pseudo-experts E.. that every layer of every generation has too
  std::size_t memory_max_bytes = 0;
};

// What a store allocates.
struct store_bill {
  std::size_t pages = 0;    // for all slots of all MoE layers, shared ones included, and spare ones
  std::size_t staging = 0;  // of one expert in canonical bytes, on the host

  bool operator==(const store_bill&) const = default;
};

// How the caller of prepare() follows and stops it.
struct prepare_watch {
  // Experts loaded so far and to load in all; called on the owner's thread, first with 0.
  std::function<void(std::uint32_t loaded, std::uint32_t total)> on_progress;
  const std::atomic<bool>* cancelled = nullptr;  // looked at before each expert
};

class expert_store final {
 public:
  static expected<store_bill> bill(const expert_store_options& options,
                                   const model_description& model, std::size_t page_bytes);

  // reason::memory_insufficient with both numbers, before anything is allocated, when the bill is
  // above memory_max_bytes; pages alone are billed where they do not lie on the host. `backend` and
  // `source` outlive the store. Requires: the source has the shared pseudo-experts asked for, the
  // backend reads pages where `memory` puts them.
  static expected<std::unique_ptr<expert_store>> create(
      const expert_store_options& options, const model_description& model,
      const kernels::Backend& backend, expert_source& source,
      const page_memory_maker& memory = host_page_memory_maker());

  ~expert_store();
  expert_store(const expert_store&) = delete;
  expert_store& operator=(const expert_store&) = delete;

  // Fills pages until every slot of `rows` is verified; the table carries the checksums. A failure
  // leaves the store as it was. reason::placement_invalid, pages_short, sequence (another
  // generation is not released yet, or this one is older), load_cancelled, or the source's own.
  expected<std::shared_ptr<const generation_table>> prepare(generation_number generation,
                                                            plan_hash plan,
                                                            std::vector<layer_slots> rows,
                                                            const prepare_watch& watch = {});
  // Exactly the prepared (generation, plan) becomes active, or nothing; the active one drains.
  expected<std::shared_ptr<const generation_table>> activate(generation_number generation,
                                                             plan_hash plan);
  // Drops a prepared generation. reason::sequence when it is active already.
  expected<void> abort(generation_number generation);
  // Pages of the draining generation, if it is older than `oldest_kept`, become empty.
  // Requires: no reader holds its table.
  void release(generation_number oldest_kept);

  // nullptr when there is none in that state.
  std::shared_ptr<const generation_table> prepared() const { return table_of(prepared_); }
  std::shared_ptr<const generation_table> active() const { return table_of(active_); }
  std::shared_ptr<const generation_table> draining() const { return table_of(draining_); }
  const page_pool& pool() const noexcept { return *pool_; }

 private:
  // A generation and the page of each of its slots, layer after layer, the shared ones behind each
  // layer's; empty slots have none.
  struct holding {
    std::shared_ptr<const generation_table> table;
    std::vector<std::optional<page_index>> pages;
  };
  struct load_order;

  expert_store(const model_description& model, const kernels::Backend& backend,
               expert_source& source, std::unique_ptr<page_pool> pool, std::uint32_t shared);

  static std::shared_ptr<const generation_table> table_of(const std::optional<holding>& held);
  static bool is(const std::optional<holding>& held, generation_number generation, plan_hash plan);
  expected<void> check_rows(const std::vector<layer_slots>& rows) const;
  expected<void> check_sequence(generation_number generation) const;
  // Takes over what the active generation holds; returns what is to be loaded.
  std::vector<load_order> reuse(const std::vector<layer_slots>& rows, holding& next,
                                std::vector<slot_content>& contents) const;
  expected<void> fill(const load_order& order, holding& next, std::vector<slot_content>& contents);
  unexpected_error give_up(const holding& next, error why);
  void empty_unless_serving(const holding& dropped);

  const model_description model_;
  const kernels::Backend& backend_;
  expert_source& source_;
  std::unique_ptr<page_pool> pool_;
  const std::uint32_t shared_;
  std::vector<std::byte> gate_;  // staging: one expert in canonical bytes
  std::vector<std::byte> up_;
  std::vector<std::byte> down_;
  std::vector<float> biases_;  // gate, up, down; empty unless the experts have them
  std::optional<holding> prepared_;
  std::optional<holding> active_;
  std::optional<holding> draining_;
};

}  // namespace moetier::workers
