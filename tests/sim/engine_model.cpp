// A worker's engine as a model: it takes arrivals from the product's worker half, computes one
// after the other with what lies in its pages, and gives the rows back. A page is the expert that
// lies in it, so a wrong page shows in every row computed from it. Stuck, it stands still over its
// batch.

#include <array>

#include <fmt/core.h>

#include "tests/sim/world.hpp"
#include "tests/transport/client/toy_experts.hpp"

namespace moetier::sim {

void world::forget_arrivals(worker_host& host, source_id source) {
  std::erase_if(host.queue, [&](const transport::arrival& a) { return a.source == source; });
}

// Frames came: a turn of the engine, once for all that came together.
void world::engine_turn(std::size_t w, std::uint64_t life) {
  if (workers_[w].life != life || std::exchange(workers_[w].turn_due, true)) return;
  clock_.after(k_microsecond, [this, w, life] {
    if (workers_[w].life == life) workers_[w].turn_due = false;
    in_worker(w, life, [this, w, life] {
      worker_host& host = workers_[w];
      if (host.ending) return;
      std::array<transport::arrival, 16> arrivals;
      for (;;) {
        const std::size_t n = host.half->poll(arrivals);
        host.queue.insert(host.queue.end(), arrivals.begin(),
                          arrivals.begin() + static_cast<std::ptrdiff_t>(n));
        if (n < arrivals.size()) break;
      }
      hear_unreached(w, life);
      compute_next(w, life);
    });
  });
}

void world::hear_unreached(std::size_t w, std::uint64_t life) {
  std::array<source_id, 16> sources;
  const std::size_t n = workers_[w].half->poll_unreached(sources);
  for (std::size_t i = 0; i < n; ++i) {
    const auto at = workers_[w].sources.find(sources[i]);
    if (at == workers_[w].sources.end()) continue;
    const workers::source_attach_done e{sources[i], at->second.incarnation, false, "unreached",
                                        true};
    clock_.after(dice_.below(5 * k_millisecond),
                 [this, w, life, e] { in_worker(w, life, [this, w, e] { step_worker(w, e); }); });
  }
}

void world::compute_next(std::size_t w, std::uint64_t life) {
  worker_host& host = workers_[w];
  if (host.computing || host.queue.empty()) return;
  host.computing = true;
  host.busy_since = clock_.now();
  const time_ns begin = std::max(clock_.now(), host.stuck_until);
  clock_.at(begin + dice_.between(50 * k_microsecond, 4 * k_millisecond), [this, w, life] {
    in_worker(w, life, [this, w, life] {
      worker_host& engine = workers_[w];
      engine.computing = false;
      if (clock_.now() < engine.stuck_until) return compute_next(w, life);
      engine.busy_since = 0;
      if (engine.queue.empty()) return;  // its source went meanwhile
      const transport::arrival work = engine.queue.front();
      engine.queue.pop_front();
      serve(w, work);
      ++engine.tick;
      compute_next(w, life);
    });
  });
}

void world::serve(std::size_t w, const transport::arrival& work) {
  worker_host& host = workers_[w];
  const auto attached_as = host.sources.find(work.source);
  check(attached_as != host.sources.end() && attached_as->second.session == work.key.session,
        "rows of a session that is not attached here");
  const auto& plan = host.serving;
  if (!plan || plan->generation != work.key.generation || plan->plan != work.key.plan ||
      plan->resolution != work.key.resolution_id) {
    const std::uint64_t held = plan ? plan->generation.value : 0;
    host.half->give_back(work.ticket, 0, status::stale_generation, held);
    return;
  }
  const auto rows = host.half->return_region(work.ticket);
  check(!rows.empty(), "an arrival without a place for its rows");
  const auto& pages = plan->pages.at(work.key.layer.value);
  const std::uint32_t written = client::toy::answer(
      *work.shape, static_cast<kernels::return_mode>(work.key.return_mode),
      head_options_.model.hidden_size, work.rows, work.hidden.data(), work.records.data(),
      rows.data(), [&](std::int32_t slot) {
        const auto global = static_cast<std::uint32_t>(slot);
        check(global >= plan->first_slot && global - plan->first_slot < pages.size(),
              "rows came to a worker that has no such slot");
        const std::int32_t content = pages[global - plan->first_slot];
        check(content >= 0, "rows came to an empty slot");
        return static_cast<std::uint32_t>(content);
      });
  host.rows += work.rows;
  host.half->give_back(work.ticket, written, status::ok, 0);
}

}  // namespace moetier::sim
