#pragma once
// The engine: one thread that progresses the worker's half of the data plane and computes. It
// serves exchanges of many sources and sessions in any layer order, each from the generation that
// its rows name; a generation it does not hold is answered STALE with the newest it holds. Between
// two calls it looks for new ones and then takes the one whose turn it is (waiting_calls). Commands
// reach it through a mailbox, never through a lock on the layer's path; after start nothing on that
// path allocates.
//
// Thread: start, stop, post_*, progress, tick: any; the sinks are called on the engine's own thread
// and must hand over at once.

#include <cstdint>
#include <functional>
#include <memory>

#include "kernels/backend.hpp"
#include "schemas/base/time.hpp"
#include "transport/communication.hpp"
#include "transport/waits/wait_ring.hpp"
#include "workers/core/event.hpp"
#include "workers/engine/waiting_calls.hpp"
#include "workers/engine/engine_meter.hpp"
#include "workers/store/adapter_set.hpp"
#include "workers/store/generation_table.hpp"

namespace moetier::workers {

struct engine_options {
  std::uint32_t layers = 0;       // MoE layers of the model
  std::uint32_t rows_max = 4096;  // rows of one exchange
  std::uint32_t top_k_max = 0;    // k of the widest row record
  std::uint32_t sources_max = 64;
  duration_ns spin = 50 * k_microsecond;    // since the last useful progress, then sleep
  duration_ns quiet = 100 * k_millisecond;  // without an arrival: drained
};

class engine final {
 public:
  struct sinks {
    std::function<void(const source_attach_done&)> on_attached;
    std::function<void(const pages_released&)> on_released;
    std::function<void()> on_drained;
  };

  // Allocates all buffers. Requires: backend and half outlive the engine.
  engine(const engine_options& options, kernels::Backend& backend, transport::WorkerHalf& half,
         sinks out);
  ~engine();
  engine(const engine&) = delete;
  engine& operator=(const engine&) = delete;

  void start();
  void stop();  // joins the thread; idempotent

  // From now on rows of the table's generation are served; global slot = first_slot + local slot.
  void post_serve(std::shared_ptr<const generation_table> table, std::uint32_t first_slot,
                  std::uint64_t resolution = 0);
  // Gives up tables older than this once no step holds them; answered by on_released.
  void post_release(generation_number older_than);
  void post_attach(const control::source_attachment& source);  // answered by on_attached
  void post_detach(source_id source, incarnation_id incarnation);
  void post_adapters(std::shared_ptr<const adapter_set> adapters);  // in place of the earlier set
  void post_drain();  // goes on serving; on_drained when nothing has come for `quiet`

  // Where the engine stands, also while it is busy or stuck in a call. `counts` is filled only when
  // they changed since the last call with with_counts.
  engine_progress progress(bool with_counts);
  std::uint64_t tick() const noexcept;          // rises while the engine turns: for /livez
  transport::carrier_counters carrier() const;  // as of the last turn
  queue_figures queue() const noexcept;         // calls that wait and calls that were refused
  // The flight recorder: how long each call kept the engine, by source.
  const transport::wait_ring& waits() const noexcept;
  engine_reading reading() const;

 private:
  class loop;
  std::unique_ptr<loop> loop_;
};

}  // namespace moetier::workers
