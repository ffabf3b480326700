#pragma once
// What a resolution names, made for this worker: the backend, tested against the reference on eight
// rows, the source of experts in the backend's format, and where pages lie. Thread: owner (the
// loader).

#include <cstdint>
#include <memory>

#include "actors/roles/device_equipment.hpp"
#include "kernels/backend.hpp"
#include "schemas/resolution/report.hpp"
#include "workers/weights/checkpoint.hpp"
#include "workers/weights/quantising_source.hpp"

namespace moetier::roles {

struct equipment_wish {
  unsigned threads = 1;                      // of a CPU backend
  workers::worker_device* device = nullptr;  // null = the processor computes
  device_wish on_device{};
};

struct equipment {
  std::unique_ptr<kernels::Backend> backend;
  std::unique_ptr<workers::quantising_source> quantising;  // null = the files hold the format
  workers::expert_source* source = nullptr;                // the one to load from
  const model_description* model = nullptr;                // as `source` gives it
  std::unique_ptr<workers::page_memory_maker> pages;       // null = the host's memory
  std::size_t pages_max_bytes = 0;                         // of `pages`
  workers::device_bill bill{};                             // all of a device; zeros without one

  // reason::backend_unresolved: it cannot be made here or fails its self-test; on a device also
  // memory_insufficient, device_lost. Requires: `files` and the device outlive the equipment.
  static expected<equipment> make(const resolution::resolution_report& resolved,
                                  workers::checkpoint& files, const equipment_wish& wish);
};

}  // namespace moetier::roles
