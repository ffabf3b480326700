#pragma once
// The worker's loader: one thread that owns the expert store and fills its pages, one job after the
// other in the order of the core's effects. The store is made at the first plan, when the number of
// slots is known. Answers go out as events and tables.
//
// Thread: any for the public calls, which hand over and return, but for activate(); on_event is
// called on the loader's.

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>

#include "actors/log/event_log.hpp"
#include "actors/roles/job_thread.hpp"
#include "kernels/backend.hpp"
#include "workers/core/event.hpp"
#include "workers/store/expert_store.hpp"
#include "workers/store/load_meter.hpp"
#include "workers/weights/quantising_source.hpp"

namespace moetier::roles {

class weight_loader final {
 public:
  struct options {
    std::uint32_t spare_pages = 8;
    std::size_t memory_max_bytes = 0;
  };

  // What a resolution names, made: the backend whose pages are filled and where experts come from.
  struct tools {
    const model_description* model = nullptr;  // in the backend's format
    const kernels::Backend* backend = nullptr;
    workers::expert_source* source = nullptr;
    const workers::quantising_source* quantising = nullptr;  // null = the files hold the format
    const workers::page_memory_maker* pages = nullptr;       // null = the host's memory
    std::size_t pages_max_bytes = 0;                         // of `pages`
  };
  // Makes them for a store of that size, or tells why this worker cannot; on the loader's thread.
  // What it made before is replaced when another resolution asks, and lives until then.
  using equip_fn = std::function<expected<tools>(const resolution::resolution_report& resolved,
                                                 const workers::expert_store_options& store)>;

  weight_loader(const options& o, equip_fn equip, std::function<void(workers::event)> on_event,
                event_log& log);
  ~weight_loader();  // stops a load at its next expert
  weight_loader(const weight_loader&) = delete;
  weight_loader& operator=(const weight_loader&) = delete;

  void load(const workers::load_plan& plan);
  void cancel(generation_number generation);
  // Waits for the loader's thread: the caller says COMMITTED next, and rows may come at once. The
  // prepared plan has been loaded, so nothing long stands before it.
  expected<std::shared_ptr<const workers::generation_table>> activate(generation_number generation,
                                                                      plan_hash plan);
  void release(generation_number oldest_kept);  // once the engine has let go

  workers::load_reading loads() const { return meter_.read(); }

 private:
  void tell_quantising_error() const;
  void count_pages() noexcept;
  void do_load(const workers::load_plan& plan, const std::atomic<bool>& cancelled);
  expected<void> make_store(const workers::load_plan& plan, std::uint32_t slots);
  expected<std::shared_ptr<const workers::generation_table>> prepare(
      const workers::load_plan& plan, const std::atomic<bool>& cancelled);

  const options options_;
  const equip_fn equip_;
  const std::function<void(workers::event)> on_event_;
  event_log& log_;
  workers::load_meter meter_;
  // The loader thread's alone:
  std::unique_ptr<workers::expert_store> store_;
  std::uint64_t resolution_ = 0;  // that store_ was made for
  const workers::quantising_source* quantising_ = nullptr;

  std::mutex mutex_;
  generation_number loading_;
  std::shared_ptr<std::atomic<bool>> cancelled_;  // of loading_
  job_thread jobs_;                               // last: it ends before what its jobs use
};

}  // namespace moetier::roles
