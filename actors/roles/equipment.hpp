#pragma once
// What a resolution names, made for this worker: the backend, tested against the reference on eight
// rows, and the source of experts in the backend's format. Thread: owner (the loader).

#include <cstdint>
#include <memory>

#include "kernels/backend.hpp"
#include "schemas/resolution/report.hpp"
#include "workers/weights/checkpoint.hpp"
#include "workers/weights/quantising_source.hpp"

namespace moetier::roles {

struct equipment {
  std::unique_ptr<kernels::Backend> backend;
  std::unique_ptr<workers::quantising_source> quantising;  // null = the files hold the format
  workers::expert_source* source = nullptr;                // the one to load from
  const model_description* model = nullptr;                // as `source` gives it

  // reason::backend_unresolved: it cannot be made here or fails its self-test. Requires: `files`
  // outlives the equipment.
  static expected<equipment> make(const resolution::resolution_report& resolved,
                                  workers::checkpoint& files, unsigned threads);
};

}  // namespace moetier::roles
