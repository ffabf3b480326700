#pragma once
// A backend on this worker's CUDA device and the memory of its pages: billed as one before anything
// is allocated, then made and tested. Thread: owner (the loader).

#include <cstddef>
#include <memory>
#include <string_view>

#include "kernels/backend.hpp"
#include "schemas/model/model_description.hpp"
#include "workers/device/device_backend.hpp"
#include "workers/device/worker_device.hpp"
#include "workers/store/expert_store.hpp"

namespace moetier::roles {

struct device_wish {
  workers::device_capacity capacity;      // of one call
  workers::expert_store_options store{};  // its pages lie on the device
  std::size_t memory_max_bytes = 0;       // of the device; 0 = what is free
};

struct device_equipment {
  std::unique_ptr<kernels::Backend> backend;
  std::unique_ptr<workers::page_memory_maker> pages;
  std::size_t pages_max_bytes = 0;  // what is left for them
  workers::device_bill bill{};
};

// reason::memory_insufficient with both numbers and the parts, backend_unresolved: this build has
// no such layer, or it fails its self-test; device_lost. `model` has the format that the experts
// are held in. Requires: `device` outlives what is made.
expected<device_equipment> make_on_device(workers::worker_device& device, std::string_view identity,
                                          const kernels::expert_shape& shape,
                                          const model_description& model, const device_wish& wish);

}  // namespace moetier::roles
