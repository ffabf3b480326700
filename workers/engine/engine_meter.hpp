#pragma once
// What an engine has done and where its time went: per stage of a call a histogram, calls and rows
// by how they ended, turns of the loop that stood still. The engine writes, anybody reads; writing
// takes no lock and no memory.
//
// Stages of a call, in their order: `receive` from its header to its last byte, `wait` until the
// engine takes it up, `group` reading records and sorting entries by slot, then either `fc1` (rows
// gathered, first product, activation: one loop in the CPU kernels) and `fc2` (second product,
// router weight, sum), or `compute` for backends that do not tell them apart (a GPU's launches are
// one recorded graph, copies and row quantiser included), and `give_back`.
// Thread: engine, but read(): any.

#include <array>
#include <atomic>
#include <cstdint>
#include <string_view>

#include "schemas/base/histogram.hpp"
#include "schemas/base/status.hpp"
#include "schemas/base/time.hpp"
#include "transport/communication.hpp"
#include "workers/layer/moe_layer.hpp"

namespace moetier::workers {

enum class work_stage : std::uint8_t { receive, wait, group, fc1, fc2, compute, give_back };
inline constexpr std::size_t k_work_stages = 7;
std::string_view work_stage_name(work_stage s) noexcept;

// A turn of the loop, less the calls that it computed, or a sleep beyond its limit.
inline constexpr duration_ns k_engine_stall_min = 10 * k_millisecond;

// Ends of a call as a worker knows them; what is none of them counts as internal.
inline constexpr std::array k_worker_ends{
    status::ok,        status::invalid,          status::bad_state,   status::unsupported,
    status::timeout,   status::stale_generation, status::unavailable, status::overloaded,
    status::cancelled, status::corrupt,          status::device,      status::internal};

struct engine_reading {
  std::array<histogram_reading, k_work_stages> stages;
  histogram_reading batch_rows;         // rows of one grouped pass
  histogram_reading batch_sessions;     // sources whose calls one turn of the loop took up
  histogram_reading activated_experts;  // slots of this worker that a pass has rows for
  std::array<std::uint64_t, k_worker_ends.size()> calls{};  // by end
  std::array<std::uint64_t, k_worker_ends.size()> rows{};   // that came with them
  std::uint64_t padding_rows = 0;
  std::uint64_t stalls = 0;
};

class engine_meter final {
 public:
  // One exchange, from what the carrier, the layer and the engine know of it.
  void count(const transport::arrival& work, const served_exchange& served, status end,
             time_ns began, time_ns ended) noexcept;
  // An end that no computing went before.
  void count_end(status end, std::uint32_t rows) noexcept;
  void count_turn(std::uint32_t sources, duration_ns idle_or_other) noexcept;
  engine_reading read() const;

 private:
  void add(work_stage stage, duration_ns took) noexcept {
    stages_[static_cast<std::size_t>(stage)].add(took);
  }
  static void raise(std::atomic<std::uint64_t>& of, std::uint64_t by) noexcept {
    of.store(of.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
  }

  std::array<histogram, k_work_stages> stages_{
      histogram(k_stage_bounds_ns), histogram(k_stage_bounds_ns), histogram(k_stage_bounds_ns),
      histogram(k_stage_bounds_ns), histogram(k_stage_bounds_ns), histogram(k_stage_bounds_ns),
      histogram(k_stage_bounds_ns)};
  histogram batch_rows_{k_count_bounds};
  histogram batch_sessions_{k_session_bounds};
  histogram activated_experts_{k_count_bounds};
  std::array<std::atomic<std::uint64_t>, k_worker_ends.size()> calls_{};
  std::array<std::atomic<std::uint64_t>, k_worker_ends.size()> rows_{};
  std::atomic<std::uint64_t> padding_rows_{0};
  std::atomic<std::uint64_t> stalls_{0};
};

}  // namespace moetier::workers
