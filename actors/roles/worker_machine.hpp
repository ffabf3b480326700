#pragma once
// The working parts of a worker behind the shell's orders: device, checkpoint, carrier half, loader
// and, once a resolution has named it, backend and engine. It passes orders to the thread that
// obeys them and their answers back as events; it decides nothing. Thread: the worker_machinery
// calls: the worker actor; figures, alive: any.

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>

#include "actors/config/settings.hpp"
#include "actors/control/worker_shell.hpp"
#include "actors/http/worker_probe.hpp"
#include "actors/log/event_log.hpp"
#include "actors/roles/adapter_shelf.hpp"
#include "actors/roles/ending.hpp"
#include "actors/roles/equipment.hpp"
#include "actors/roles/job_thread.hpp"
#include "actors/roles/weight_loader.hpp"
#include "schemas/resolution/environment.hpp"
#include "transport/communication.hpp"
#include "workers/device/worker_device.hpp"
#include "workers/engine/engine.hpp"
#include "workers/weights/checkpoint.hpp"

namespace moetier::roles {

class worker_machine final : public actors::worker_machinery {
 public:
  static expected<std::unique_ptr<worker_machine>> make(const config::settings& settings,
                                                        incarnation_id incarnation, event_log& log,
                                                        ending& end);
  ~worker_machine() override;

  // What the core must know of these parts.
  void describe(workers::core_options& to) const;
  // Starts the loader; events go to `post` from the loader's and the engine's threads until stop().
  void start(std::function<void(workers::event)> post);
  void stop();

  void load(const workers::load_plan& plan) override;
  void cancel(const workers::cancel_load& plan) override;
  void serve(const workers::serve_generation& generation) override;
  void release(const workers::release_pages& pages) override;
  void attach(const control::source_attachment& source) override;
  void detach(const workers::detach_source& source) override;
  void load_adapter(const control::held_adapter& adapter) override;
  void drop_adapter(std::uint32_t adapter) override;
  void drain() override;
  void stopped(bool failed, const std::string& why) override;
  workers::engine_progress progress(bool with_counts) override;

  // For metrics; `core` is filled by the caller.
  http::worker_figures figures() const;
  std::string environment_text() const;  // its document
  // The flight recorder, summed up or whole; reason::not_ready before there is an engine.
  expected<std::string> waits_text() const;
  expected<std::string> flight_text() const;
  // False when the engine's tick stands still.
  bool alive() const noexcept;

 private:
  worker_machine(const config::settings& settings, event_log& log, ending& end);

  const config::settings& settings_;
  event_log& log_;
  ending& ending_;
  // On the loader's thread: makes backend and engine of a resolution, in place of earlier ones.
  expected<weight_loader::tools> equip(const resolution::resolution_report& resolved,
                                       const workers::expert_store_options& store);
  expected<void> open_device();
  std::shared_ptr<workers::engine> engine() const;  // null before the first resolution
  // The newest set of adapters to the engine of now.
  void hand_adapters_over();

  std::unique_ptr<workers::worker_device> device_;  // null = the processor computes
  std::atomic<control::device_state> device_state_{control::device_state::none};
  std::unique_ptr<workers::checkpoint> checkpoint_;
  resolution::environment environment_;
  std::unique_ptr<transport::Communication> carrier_;
  std::unique_ptr<transport::WorkerHalf> half_;
  std::function<void(workers::event)> post_;
  equipment equipment_;                      // the loader's; the engine computes with its backend
  std::unique_ptr<weight_loader> loader_;
  // Adapters are read beside the loader: a plan is activated within moments however long they take.
  std::unique_ptr<adapter_shelf> adapters_;
  std::mutex handing_over_;  // between reading the set and posting it
  std::unique_ptr<job_thread> adapter_reader_;
  std::size_t memory_max_bytes() const;
  std::atomic<std::uint64_t> device_errors_{0};

  mutable std::mutex mutex_;  // what several threads read
  std::shared_ptr<workers::engine> engine_;
  bool runs_adapters_ = false;        // its backend does
  workers::device_bill device_bill_;  // zeros without a device, or before a resolution
  std::uint64_t idle_tick_ = 0;       // stands for the engine's before there is one
  std::shared_ptr<const workers::generation_table> table_;
  std::optional<error> load_error_;  // of the newest plan that could not be loaded
  workers::engine_progress progress_;
  mutable std::uint64_t seen_tick_ = 0;
  mutable time_ns tick_moved_at_ = 0;
};

}  // namespace moetier::roles
