#pragma once
// The engine: one thread that progresses the worker's half of the data plane and computes. It
// serves exchanges of many sources and sessions in any layer order, each from the generation that
// its rows name; a generation it does not hold is answered STALE with the newest it holds. Commands
// reach it through a mailbox, never through a lock on the layer's path; after start nothing on that
// path allocates.
//
// Thread: start, stop, post_*, progress: any; everything else happens on the engine's own thread.

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "kernels/backend.hpp"
#include "schemas/base/time.hpp"
#include "transport/communication.hpp"
#include "workers/core/event.hpp"
#include "workers/store/generation_table.hpp"

namespace moetier::workers {

struct engine_options {
  worker_id self;                         // 0 until welcomed; only for texts
  std::uint32_t experts_top_k_max = 0;    // k of the widest row record
  std::uint32_t rows_max = 4096;          // rows of one exchange
  duration_ns spin = 20 * k_microsecond;  // since the last useful progress, then sleep
  duration_ns beat = 25 * k_millisecond;  // how often progress is reported at least
};

class engine final {
 public:
  // `on_progress` and `on_attached` are called on the engine's thread and must hand over at once.
  struct sinks {
    std::function<void(const engine_progress&)> on_progress;
    std::function<void(const source_attach_done&)> on_attached;
    std::function<void(const pages_released&)> on_released;
    std::function<void()> on_drained;
  };

  engine(engine_options options, kernels::Backend& backend, transport::WorkerHalf& half, sinks out);
  ~engine();
  engine(const engine&) = delete;
  engine& operator=(const engine&) = delete;

  void start();
  void stop();  // joins the thread

  void post_serve(std::shared_ptr<const generation_table> table);
  void post_release(generation_number older_than);
  void post_attach(const control::source_attachment& source);
  void post_detach(source_id source, incarnation_id incarnation);
  void post_drain();

  std::uint64_t tick() const noexcept;  // for /livez

 private:
  class loop;
  std::unique_ptr<loop> loop_;
};

}  // namespace moetier::workers
