#pragma once
// Where the rows of tensors in device memory stand on the host while the source half works on them:
// pinned memory for one call, made when the first device tensor comes and kept until the session
// ends, so that later calls allocate nothing. One set of places does for the whole session, because
// a call's inputs are copied out of them before submit returns and its results before collect does.
// It keeps the driver and the contexts of the devices it has seen. Thread: owner.

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "schemas/base/error.hpp"
#include "transport/client/abi/call_tensors.hpp"
#include "transport/client/abi/device_driver.hpp"

namespace moetier::abi {

class device_staging final {
 public:
  // Loads nothing yet. `library` holds the driver.
  device_staging(std::string library, const tensor_sizes& sizes);
  device_staging(const device_staging&) = delete;
  ~device_staging();

  // Brings a call's rows to the host behind the work that `stream` holds, waits for it, and makes
  // the views those of host memory. After a failure nothing moves any more.
  // Requires: views of one device.
  expected<void> fetch(call_views& views, void* stream);

  // Places for a result, as views of host memory. Requires: views of one device.
  expected<result_views> places_for(const result_views& views, void* stream);
  // Copies the places' rows to the device behind the work that `stream` holds, and waits for it.
  expected<void> store(const result_views& places, const result_views& views, void* stream);

 private:
  // Of the pinned memory; inputs and results of one kind share a part.
  enum part : std::size_t { rows, router_rows, ids, weights, token_ids, adapter_ids, parts };

  expected<device_driver::context> ready(std::int32_t device);
  tensor_view at(part where, const tensor_view& view) const;
  expected<void> wait_after(expected<void> copied, void* stream) const;

  std::string library_;
  std::size_t offsets_[parts + 1] = {};
  std::unique_ptr<device_driver> driver_;
  std::vector<std::pair<std::int32_t, device_driver::context>> contexts_;
  std::byte* memory_ = nullptr;
};

}  // namespace moetier::abi
